//! Every way to get a study wrong that we could think of: where the error points and what it says.

#![allow(clippy::unwrap_used)]

use ceteris_study::{Study, StudyError};

/// A study in which everything is right. Tests replace lines of it or add to it.
const BASE: &str = "\
title = \"t\"
[server.config]
innodb_flush_method = \"fsync\"
[workload.oltp_write_only]
rows = 1_000
[load]
connections = 8
[[question]]
name = \"q\"
vary = \"server.config.innodb_flush_method\"
levels = [\"fsync\", \"O_DIRECT\"]
";

fn error(text: &str) -> StudyError {
    match Study::parse("study.toml", text, &[]) {
        Err(error) => error,
        Ok(_) => panic!("this should be an error:\n{text}"),
    }
}

/// `(what is replaced in BASE, by what, line, column, width, part of the message, part of the hint)`
type Case = (&'static str, &'static str, usize, usize, usize, &'static str, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Load.
    ("connections = 8", "think_time = \"1s\"\nrate = 5", 7, 14, 4, "think time and a rate exclude each other", "closed loop"),
    ("connections = 8", "rate = 0", 7, 8, 1, "`load.rate` must be a number above 0", ""),
    ("connections = 8", "rate = 1e9", 7, 8, 3, "more than 100 million", "transactions per second"),
    ("connections = 8", "stages = [{ at = \"1s\", rate = 5 }]", 7, 10, 25, "a stage changes the rate, but the load has none", "give `load.rate`"),
    ("connections = 8", "stages = [{ at = \"2s\", connections = 5 }, { at = \"1s\", connections = 6 }]", 7, 10, 64, "the stage at 1s stands behind the one at 2s", "order"),
    ("connections = 8", "stages = [{ at = \"70s\", connections = 5 }]", 7, 10, 33, "the stage at 70s begins after the end", "load.measure"),
    ("connections = 8", "stages = [{ at = \"1s\", ramp = \"1s\" }]", 7, 10, 28, "the stage at 1s changes nothing", "`rate` or `connections`"),
    ("connections = 8", "stages = [{ connections = 5 }]", 7, 11, 19, "`at` is missing in `load.stages`", "since the first transaction"),
    ("connections = 8", "stages = [{ at = \"1s\", connection = 5 }]", 7, 24, 10, "unknown key `connection` in `load.stages`", "did you mean `connections`?"),
    ("connections = 8", "batching = \"0%\"", 7, 12, 4, "`load.batching` must be a share above 0%", ""),
    ("connections = 8", "reactor = \"poll\"", 7, 11, 6, "`poll` is not a value of `load.reactor`", "epoll"),
    // Syntax.
    ("rows = 1_000", "rows = 60s", 5, 8, 3, "must be quoted", ""),
    ("rows = 1_000", "rows = 1\nrows = 2", 6, 1, 4, "duplicate key", ""),
    ("[load]", "[load", 6, 6, 1, "unclosed table", ""),
    // Keys.
    ("connections = 8", "conections = 8", 7, 1, 10, "unknown key `conections` in `load`", "did you mean `connections`? allowed: connections, warmup"),
    ("title = \"t\"", "title = \"t\"\nblocks = 4", 2, 1, 6, "unknown key `blocks`", "did you mean `design.blocks`?"),
    ("[server.config]", "[server]\nsql_mode = \"\"\n[server.config]", 3, 1, 8, "unknown key `sql_mode` in `server`", "[server.config]"),
    ("rows = 1_000", "row = 1_000", 5, 1, 3, "unknown key `row` in `workload.oltp_write_only`", "did you mean `rows`?"),
    ("[workload.oltp_write_only]", "[workload.oltp_writeonly]", 4, 11, 14, "unknown key `oltp_writeonly`", "did you mean `oltp_write_only`?"),
    ("[load]", "[placement.host]\ncpu = 4\n[load]", 7, 1, 3, "unknown key `cpu` in `placement.host`", "did you mean `cpus`?"),
    ("[load]", "[placement.host]\ncpus = \"0-3\"\nassign = \"spread\"\n[load]", 8, 10, 8, "both say which processors", "leave one"),
    ("[load]", "[placement.kmv]\n[load]", 6, 12, 3, "unknown key `kmv`", "did you mean `kvm`?"),
    ("name = \"q\"", "nam = \"q\"", 9, 1, 3, "unknown key `nam` in `question`", "did you mean `name`?"),
    // Types.
    ("connections = 8", "connections = \"8\"", 7, 15, 3, "expected `load.connections` to be a whole number, found a string", "whole number from 1"),
    ("connections = 8", "connections = 8.0", 7, 15, 3, "found a fraction", ""),
    ("title = \"t\"", "title = 3", 1, 9, 1, "expected `title` to be a string", "quotes"),
    ("[[question]]", "[question]", 8, 1, 10, "expected `question` to be an array of tables", "[[question]]"),
    ("vary = ", "compound = \"yes\"\nvary = ", 10, 12, 5, "expected `question.compound` to be a boolean", "without quotes"),
    ("\"fsync\"\n[work", "[\"fsync\"]\n[work", 3, 23, 9, "found an array", "a string, a number or a boolean"),
    ("\"fsync\"\n[work", "{ a = 1 }\n[work", 3, 23, 9, "found a table", "holds a dot"),
    ("\"fsync\"\n[work", "1979-05-27\n[work", 3, 23, 10, "found a date", ""),
    // Units and bounds.
    ("connections = 8", "connections = 0", 7, 15, 1, "`load.connections` must be a whole number from 1", ""),
    ("rows = 1_000", "rows = 0", 5, 8, 1, "must be a whole number from 1 to 2147483647", ""),
    ("rows = 1_000", "rows = 99999999999999999999999999999999999999999999", 5, 8, 44, "must be a whole number", ""),
    ("rows = 1_000", "tables = 0", 5, 10, 1, "tables` must be a whole number from 1", ""),
    ("rows = 1_000", "distribution = \"zipf\"", 5, 16, 6, "`zipf` is not a value", "allowed: uniform, special, special_0_4, gaussian, pareto, zipfian"),
    ("rows = 1_000", "range_size = 50", 5, 1, 10, "unknown key `range_size` in `workload.oltp_write_only`", "allowed: tables, index_updates"),
    ("rows = 1_000", "rand_pareto_h = 1.5", 5, 17, 3, "`workload.oltp_write_only.rand_pareto_h` must be a number from 0.001 to 0.999", ""),
    ("rows = 1_000", "rand_pareto_h = \"1\"", 5, 17, 3, "to be a number, found a string", "number from 0.001"),
    ("rows = 1_000", "skip_trx = true\nindex_updates = 0\nnon_index_updates = 0\ndelete_inserts = 0", 4, 2, 8, "a transaction of oltp_write_only has no statement", "above 0"),
    ("[workload.oltp_write_only]\nrows = 1_000", "[workload.bulk_insert]\ntables = 7", 4, 2, 8, "8 connections and 7 tables", "raise workload.bulk_insert.tables"),
    ("connections = 8", "connect = \"tpc\"", 7, 11, 5, "`tpc` is not a value of `load.connect`", "did you mean `tcp`?"),
    ("connections = 8", "measure = 60", 7, 11, 2, "expected `load.measure` to be a duration, found a whole number", "one of ms, s, m, h"),
    ("connections = 8", "measure = \"60\"", 7, 11, 4, "`60` has no unit", "one of ms, s, m, h"),
    ("connections = 8", "measure = \"60 sec\"", 7, 11, 8, "`sec` is not a unit of time", "one of ms, s, m, h"),
    ("connections = 8", "measure = \"999ms\"", 7, 11, 7, "duration from `1s`", ""),
    ("connections = 8", "warmup = \"2000h\"", 7, 10, 7, "duration from `0s` to `24h`", ""),
    ("[load]", "[design]\nblocks = 1\n[load]", 7, 10, 1, "`design.blocks` must be a whole number from 2", ""),
    ("[load]", "[design]\nmargin = 0.01\n[load]", 7, 10, 4, "expected `design.margin` to be a share", "percent sign"),
    ("[load]", "[design]\nmargin = \"0%\"\n[load]", 7, 10, 4, "share above 0%", ""),
    ("[load]", "[design]\nprecision = \"100%\"\n[load]", 7, 13, 6, "below 100%", ""),
    ("[load]", "[design]\nconfidence = 0.5\n[load]", 7, 14, 3, "above 0.5", "0.95"),
    ("[load]", "[design]\nconfidence = 95\n[load]", 7, 14, 2, "below 1", "0.95"),
    ("[load]", "[design]\nblocks = 8\nmax_blocks = 4\n[load]", 8, 14, 1, "`max_blocks` is 4, less than `blocks`, which is 8", ""),
    ("name = \"q\"", "name = \"q\"\nmax_blocks = 3", 10, 14, 1, "less than `blocks`, which is 6", ""),
    ("title = \"t\"", "title = \"t\"\nseed = -1", 2, 8, 2, "whole number from 0", ""),
    ("title = \"t\"", "title = \" \"", 1, 9, 3, "`title` is empty", ""),
    ("title = \"t\"", "title = \"a\\nb\"", 1, 9, 6, "line break", ""),
    // What is missing.
    ("title = \"t\"\n", "", 1, 1, 1, "the study has no `title`", ""),
    ("[workload.oltp_write_only]\nrows = 1_000\n", "", 1, 1, 1, "the study has no workload", "[workload.oltp_read_write]"),
    ("name = \"q\"\n", "", 8, 1, 12, "`name` is missing in `question`", ""),
    ("levels = [\"fsync\", \"O_DIRECT\"]\n", "", 8, 1, 12, "`levels` is missing in `question`", "two or more values"),
    ("levels = [\"fsync\", \"O_DIRECT\"]", "levels = [\"fsync\"]", 11, 10, 9, "at least two levels", "baseline"),
    // The server's section.
    ("[server.config]", "[server.config]\ninnodb-flush-method = \"fsync\"", 4, 1, 19, "`innodb_flush_method` is set twice", "`-` and `_`"),
    ("[server.config]", "[server.config]\nInnoDB_Flush_Method = \"fsync\"", 4, 1, 19, "`innodb_flush_method` is set twice", "capital"),
    ("[server.config]", "[server.config]\nsecure_file_priv = \"\"", 3, 1, 16, "cannot be set in a study", ""),
    ("[server.config]", "[server.config]\nlog_bin = \"/var/x/bin\"", 3, 11, 12, "`server.config.log_bin` names a file outside", "plain name"),
    ("[server.config]", "[server.config]\nGeneral-Log-File = \"../g.log\"", 3, 20, 10, "names a file outside", "plain name"),
    ("levels = [\"fsync\", \"O_DIRECT\"]", "levels = [\"ON\", \"/x/b\"]\ngiven = { \"server.config.relay_log\" = \"/x\" }", 12, 39, 4, "`server.config.relay_log` names a file outside", "plain name"),
    ("[server.config]", "[server.config]\ndatadir = \"/x\"", 3, 1, 7, "`datadir` cannot be set in a study", "its own directories"),
    ("[server.config]", "[server.config]\npid-file = \"/x\"", 3, 1, 8, "cannot be set in a study", ""),
    ("[server.config]", "[server.config]\nloose-port = 3306", 3, 1, 10, "cannot be set in a study", ""),
    ("[server.config]", "[server.config]\n\"a b\" = 1", 3, 1, 5, "cannot be the name of a server variable", "letters"),
    ("[server.config]", "[server.config]\n\"x\\n[client]\" = 1", 3, 1, 13, "cannot be the name", ""),
    ("\"fsync\"\n[work", "\"fsync\\nport = 1\"\n[work", 3, 23, 17, "line break", ""),
    ("[server.config]", "[server.config]\na = 18446744073709551615", 3, 5, 20, "too large", "as a string"),
    ("[server.config]", "[server.config]\na = inf", 3, 5, 3, "not a finite number", ""),
    ("[server.config]", "[server.config]\nmax_connections = 4", 8, 15, 1, "8 connections cannot reach a server with max_connections = 4", "raise"),
    // Variants.
    ("[load]", "[workload.oltp_read_only]\n[load]", 6, 11, 14, "`workload` names both `oltp_write_only` and `oltp_read_only`", "exactly one of"),
    ("[load]", "[placement]\n[load]", 6, 1, 11, "`placement` names nothing", "exactly one of: host"),
    ("title = \"t\"", "title = \"t\"\nplacement = \"host\"", 2, 13, 6, "expected `placement` to be a table, found a string", "{ host = {} }"),
    // Paths.
    ("server.config.innodb_flush_method", "server.confg.x", 10, 8, 16, "the path `server.confg.x` does not exist", "did you mean `config`?"),
    ("server.config.innodb_flush_method", "load.connections.x", 10, 8, 20, "`load.connections` has no key `x`", "whole number"),
    ("server.config.innodb_flush_method", "connections", 10, 8, 13, "unknown key `connections`", "did you mean `load.connections`?"),
    ("server.config.innodb_flush_method", "server.config.datadir", 10, 8, 23, "cannot be set in a study", ""),
    ("server.config.innodb_flush_method", "placement.docker.cpus", 11, 11, 7, "expected `placement.docker.cpus` to be a number, found a string", ""),
    ("server.config.innodb_flush_method", "load", 10, 8, 6, "a question varies one thing, but `load` is a table", "connections, warmup"),
    ("server.config.innodb_flush_method", "server.config", 10, 8, 15, "is a table", "any server variable"),
    ("server.config.innodb_flush_method", "workload.oltp_read_only.rows", 10, 8, 30, "does not apply: the workload is `oltp_write_only`", "workload.oltp_write_only"),
    ("server.config.innodb_flush_method", "design.blocks", 10, 8, 15, "unknown key `design`", ""),
    ("server.config.innodb_flush_method", "", 10, 8, 2, "does not exist", "allowed: server"),
    // Levels.
    ("vary = \"server.config.innodb_flush_method\"\nlevels = [\"fsync\", \"O_DIRECT\"]", "vary = \"load.connections\"\nlevels = [\n  8,\n  \"many\",\n]", 13, 3, 6, "expected `load.connections` to be a whole number", ""),
    ("vary = \"server.config.innodb_flush_method\"\nlevels = [\"fsync\", \"O_DIRECT\"]", "vary = \"placement\"\nlevels = [{ host = {} }, { kvm = { cpu = 4 } }]", 11, 36, 3, "unknown key `cpu` in `placement.kvm`", "did you mean `cpus`?"),
    ("vary = \"server.config.innodb_flush_method\"\nlevels = [\"fsync\", \"O_DIRECT\"]", "vary = \"workload\"\nlevels = { a = { oltp_read_only = { row = 1 } }, b = { oltp_read_only = {} } }", 11, 37, 3, "unknown key `row`", "rows"),
    ("[\"fsync\", \"O_DIRECT\"]", "[\"fsync\", \"fsync\"]", 11, 20, 7, "two levels are `fsync`", "A/A control"),
    ("[\"fsync\", \"O_DIRECT\"]", "{ a = \"fsync\", a = \"x\" }", 11, 25, 1, "duplicate key", ""),
    ("[\"fsync\", \"O_DIRECT\"]", "{ \"\" = \"fsync\", b = \"x\" }", 11, 12, 2, "the name of a level` is empty", ""),
    ("levels = [\"fsync\", \"O_DIRECT\"]", "levels = \"fsync\"", 11, 10, 7, "expected `levels` to be an array or a table, found a string", "levels = [1, 2]"),
    // Compound.
    ("vary = \"server.config.innodb_flush_method\"", "vary = [\"load.connections\", \"load.connect\"]", 10, 8, 36, "a question varies one path, found a list", "compound = true"),
    ("name = \"q\"", "name = \"q\"\ncompound = true", 11, 8, 35, "varies a list of paths", "leave out `compound`"),
    ("vary = \"server.config.innodb_flush_method\"", "compound = true\nvary = [\"load.connections\", \"load.connections\"]", 11, 29, 18, "one and the same place", ""),
    ("vary = \"server.config.innodb_flush_method\"", "compound = true\nvary = [\"load.connections\", \"load.connect\"]", 12, 11, 7, "an array of 2 values", "one value for each path"),
    ("vary = \"server.config.innodb_flush_method\"", "compound = true\nvary = []", 11, 8, 2, "names no path", ""),
    // Sweep and given.
    ("name = \"q\"", "name = \"q\"\nsweep = { \"load.connections\" = 8 }", 10, 32, 1, "to be an array", ""),
    ("name = \"q\"", "name = \"q\"\nsweep = { load.connections = [8] }", 10, 11, 4, "expected the values of `load` to be an array", "in quotes"),
    ("name = \"q\"", "name = \"q\"\nsweep = { \"load.connections\" = [] }", 10, 32, 2, "is empty", ""),
    ("name = \"q\"", "name = \"q\"\nsweep = { \"load.connections\" = [8, 0x8] }", 10, 36, 3, "`8` stands twice", ""),
    ("name = \"q\"", "name = \"q\"\nsweep = { \"load.connections\" = [8, 0] }", 10, 36, 1, "whole number from 1", ""),
    ("name = \"q\"", "name = \"q\"\nsweep = { \"server.config.innodb-flush-method\" = [\"a\"] }", 10, 11, 35, "both varied and swept", ""),
    ("name = \"q\"", "name = \"q\"\nsweep = { placement = [{ host = {} }] }", 10, 11, 9, "a sweep goes along one value", ""),
    ("name = \"q\"", "name = \"q\"\ngiven = { \"server.config.innodb_flush_method\" = \"x\" }", 10, 11, 35, "is given, but the levels replace it", "leave it out"),
    ("name = \"q\"", "name = \"q\"\nsweep = { \"load.connections\" = [8, 9] }\ngiven = { \"load.connections\" = 4 }", 11, 11, 18, "is given, but the sweep replaces it", ""),
    ("name = \"q\"", "name = \"q\"\ngiven = { server.config.sql_mode = \"x\" }", 10, 11, 6, "stands in quotes", "\"server.config.innodb_flush_method\""),
    ("name = \"q\"", "name = \"q\"\ngiven = { \"load.connections\" = \"x\" }", 10, 32, 3, "expected `load.connections` to be a whole number", ""),
    ("name = \"q\"", "name = \"q\"\ngiven = { \"load.conections\" = 3 }", 10, 11, 17, "does not exist", "did you mean `connections`?"),
    ("name = \"q\"", "name = \"q\"\ngiven = [1]", 10, 9, 3, "expected `given` to be a table", ""),
];

#[test]
fn each_mistake_is_told_at_its_place() {
    let mut wrong = Vec::new();
    for (from, to, line, column, width, message, hint) in CASES {
        assert!(BASE.contains(from), "{from}");
        let text = BASE.replacen(from, to, 1);
        let error = error(&text);
        let right = error.message.contains(message)
            && error.hint.as_deref().unwrap_or("").contains(hint)
            && (error.line, error.column, error.width) == (*line, *column, *width)
            && text.lines().nth(line - 1) == Some(error.line_text.as_str())
            && error.source_name == "study.toml"
            && !error.message.ends_with('.')
            && !error.message.contains('\n');
        if !right {
            wrong.push(format!(
                "{to}\nexpected {line}:{column}+{width} {message} | {hint}\n{error}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    const { assert!(CASES.len() > 80) };
}

#[test]
fn the_base_itself_is_right() {
    Study::parse("study.toml", BASE, &[]).unwrap();
}

#[test]
fn a_fault_of_one_cell_points_at_its_value() {
    let text = BASE
        .replace("[server.config]", "[server.config]\nmax_connections = 100")
        .replace("name = \"q\"", "name = \"q\"\nsweep = { \"load.connections\" = [8, 500] }");
    let error = error(&text);
    assert_eq!((error.line, error.column), (11, 36), "{error}");
    assert!(error.message.starts_with("500 connections cannot reach"), "{error}");
}

#[test]
fn the_most_connections_of_all_stages_must_reach_the_server() {
    let stages = "stages = [{ at = \"1s\", connections = 500 }, { at = \"2s\", connections = 9 }]";
    let text = BASE
        .replace("[server.config]", "[server.config]\nmax_connections = 100")
        .replace("connections = 8", stages);
    let error = error(&text);
    assert!(error.message.starts_with("500 connections cannot reach"), "{error}");
}

#[test]
fn a_question_varies_what_the_load_is() {
    let levels = "levels = [[{ at = \"1s\", connections = 16 }], []]";
    let text = BASE
        .replace("server.config.innodb_flush_method\"", "load.stages\"")
        .replace("levels = [\"fsync\", \"O_DIRECT\"]", levels);
    let study = Study::parse("study.toml", &text, &[]).unwrap();
    let plan = study.plan();
    let most: Vec<u32> =
        plan.questions[0].cells.iter().map(|cell| cell.setup.load.connections_max()).collect();
    assert_eq!(most, [16, 8]);
}

#[test]
fn questions_are_needed_and_have_names_of_their_own() {
    let none = BASE.split("[[question]]").next().unwrap();
    let error_none = error(none);
    assert!(error_none.message.contains("asks no question"), "{error_none}");
    assert!(error_none.hint.unwrap().contains("[[question]]"));
    let error_empty = error(&format!("question = []\n{none}"));
    assert_eq!((error_empty.line, error_empty.column), (1, 12));
    let question = &BASE[BASE.find("[[question]]").unwrap()..];
    let twice = error(&format!("{BASE}{question}"));
    assert_eq!((twice.line, twice.column), (13, 8), "{twice}");
    assert!(twice.message.contains("two questions are named `q`"));
}

#[test]
fn too_many_cells_are_refused_at_once() {
    let values: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    let values = values.join(", ");
    let sweep = format!(
        "name = \"q\"\nsweep = {{ \"load.connections\" = [{values}], \"load.threads\" = [{values}] }}"
    );
    let error = error(&BASE.replace("name = \"q\"", &sweep));
    assert!(error.message.contains("more than 1000 cells"), "{error}");
}

#[test]
fn figures_from_elsewhere_need_one_of_ours() {
    let swept =
        BASE.replace("name = \"q\"", "name = \"q\"\nsweep = { \"load.connections\" = [8, 64] }");
    let figure = "\
[[published]]
question = \"q\"
level = \"fsync\"
at = { \"load.connections\" = 64 }
metric = \"p95_ms\"
value = 3
source = \"a post\"
";
    let whole = format!("{swept}{figure}");
    let study = Study::parse("study.toml", &whole, &[]).unwrap();
    assert_eq!(study.published[0].at["load.connections"], 64);
    assert_eq!(study.published[0].value, 3.0);
    for (from, to, line, column, message, hint) in [
        ("question = \"q\"", "question = \"p\"", 14, 12, "no question is named `p`", "allowed: q"),
        ("level = \"fsync\"", "level = \"fsnyc\"", 15, 9, "has no level `fsnyc`", "mean `fsync`"),
        ("\"p95_ms\"", "\"tps\"", 17, 10, "`tps` is not a value", "transactions_per_second"),
        ("value = 3", "value = -3", 18, 9, "number above 0", ""),
        ("value = 3", "value = \"3\"", 18, 9, "expected `published.value` to be a number", ""),
        (
            "= 64 }\nmetric",
            "= 63 }\nmetric",
            16,
            29,
            "does not take `load.connections` to 63",
            "8, 64",
        ),
        ("at = { \"load.connections\" = 64 }\n", "", 13, 1, "at which `load.connections`", "at ="),
        ("\"load.connections\" = 64 }", "\"load.threads\" = 64 }", 16, 8, "does not sweep", ""),
        ("source = \"a post\"\n", "", 13, 1, "`source` is missing", "where it was published"),
    ] {
        assert!(whole.contains(from), "{from}");
        let error = error(&whole.replacen(from, to, 1));
        assert!(error.message.contains(message), "{to}\n{error}");
        assert!(error.hint.as_deref().unwrap_or("").contains(hint), "{to}\n{error}");
        assert_eq!((error.line, error.column), (line, column), "{to}\n{error}");
    }
}

#[test]
fn rendered_for_the_terminal() {
    let rendered = error(&BASE.replace("connections = 8", "\tconections = 8")).to_string();
    assert_eq!(
        rendered,
        "\
error: unknown key `conections` in `load`
 --> study.toml:7:2
  |
7 |  conections = 8
  |  ^^^^^^^^^^
hint: did you mean `connections`? allowed: connections, warmup, measure, threads, connect, rate, arrivals, think_time, stages, on_lost, protocol, reactor, batching, scheduling"
    );

    let rendered = error(&BASE.replace("[\"fsync\", \"O_DIRECT\"]", "[\"fsync\"")).to_string();
    assert_eq!(
        rendered,
        "\
error: unclosed array, expected `]`
  --> study.toml:11:18
   |
11 | levels = [\"fsync\"
   |                  ^"
    );

    let rendered =
        error(&BASE.replace("title = \"t\"", "title = \"Grüße\" x \u{1b}[31m")).to_string();
    assert!(!rendered.contains('\u{1b}'), "{rendered:?}");
    assert!(rendered.contains("title = \"Grüße\" x \u{fffd}[31m\n"), "{rendered}");

    let rendered = error(&BASE.replace("title = \"t\"\n", "")).to_string();
    assert_eq!(
        rendered,
        "\
error: the study has no `title`
 --> study.toml:1:1
  |
1 | [server.config]
  | ^
hint: `title` is one line that says what is asked"
    );
}

#[test]
fn long_lines_are_cut_around_the_place() {
    let long = format!("{}conections = 3", " ".repeat(5_000));
    let error = error(&BASE.replace("connections = 8", &long));
    assert_eq!(error.column, 5_001);
    let rendered = error.to_string();
    assert!(rendered.len() < 500, "{rendered}");
    let lines: Vec<&str> = rendered.lines().collect();
    assert_eq!(lines[3].find("conections"), lines[4].find('^'), "{rendered}");
}

#[test]
fn windows_line_ends_and_byte_order_marks_do_not_move_the_place() {
    let text = BASE.replace("connections = 8", "conections = 8").replace('\n', "\r\n");
    let error_crlf = error(&text);
    assert_eq!((error_crlf.line, error_crlf.column), (7, 1));
    assert_eq!(error_crlf.line_text, "conections = 8");
    let error_bom = error(&format!("\u{feff}{}", BASE.replace("title", "titel")));
    assert_eq!((error_bom.line, error_bom.column, error_bom.width), (1, 1, 5), "{error_bom}");
}
