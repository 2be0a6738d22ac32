//! Throws arbitrary text at the study parser. It must answer every text with a study or with an
//! error that points into it, never with a panic, and the same text always with the same answer.
//! Text after a NUL byte is a `--set` override, so that these are searched too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use study::Study;

fuzz_target!(|text: &str| {
    let mut parts = text.split('\0');
    let file = parts.next().unwrap_or_default();
    let overrides: Vec<String> = parts.map(str::to_owned).collect();
    match Study::parse("fuzz.toml", file, &overrides) {
        Ok(study) => {
            let again = Study::parse("fuzz.toml", file, &overrides).map(|study| study.plan());
            let plan = study.plan();
            assert_eq!(again.as_ref(), Ok(&plan));
            for (index, question) in plan.questions.iter().enumerate() {
                let mut order = plan.order(index, question.max_blocks);
                order.sort_unstable();
                assert!(order.into_iter().eq(0..question.cells.len()));
            }
        }
        Err(error) => {
            let texts = overrides.iter().map(String::as_str).chain([file]);
            let at = error.line.checked_sub(1).expect("lines count from one");
            assert!(texts.into_iter().any(|text| {
                text.split('\n').nth(at).is_some_and(|line| {
                    // Line ends and byte order marks are not shown, but an error can be at them.
                    let shown = line.strip_suffix('\r').unwrap_or(line);
                    shown.trim_start_matches('\u{feff}')
                        == error.line_text.trim_start_matches('\u{feff}')
                        && error.column <= line.chars().count() + 1
                })
            }));
            assert!(!error.to_string().is_empty());
        }
    }
});
