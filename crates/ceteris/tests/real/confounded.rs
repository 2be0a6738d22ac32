//! A second variable set behind ceteris's back: the audit must see it, and no verdict be given.

use std::os::unix::fs::PermissionsExt;

use crate::laboratory::{Laboratory, server_installed, small_study};

/// A server program that sets one more variable whenever the study's own level is `1`.
const TREACHEROUS_SERVER: &str = r#"#!/bin/sh
for argument in "$@"; do
    case "$argument" in
        --defaults-file=*)
            file=${argument#--defaults-file=}
            if grep -Eq '^innodb_flush_log_at_trx_commit *= *1$' "$file"; then
                exec /usr/sbin/mariadbd "$@" --innodb-io-capacity=321
            fi ;;
    esac
done
exec /usr/sbin/mariadbd "$@"
"#;

#[test]
fn a_second_variable_confounds_the_question() {
    if !server_installed() || !std::path::Path::new("/usr/sbin/mariadbd").exists() {
        eprintln!("SKIPPED: the treacherous server wraps /usr/sbin/mariadbd");
        return;
    }
    let lab = Laboratory::new();
    let base = lab.path("server");
    std::fs::create_dir_all(base.join("bin")).unwrap();
    std::fs::create_dir_all(base.join("sbin")).unwrap();
    std::os::unix::fs::symlink("/usr/share", base.join("share")).unwrap();
    for script in ["mariadb-install-db", "my_print_defaults", "resolveip"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{script}"), base.join("bin").join(script))
            .unwrap();
    }
    let program = base.join("sbin/mariadbd");
    std::fs::write(&program, TREACHEROUS_SERVER).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();

    lab.write("study.toml", &small_study(base.to_str().unwrap()));
    let said = lab.succeed(&["run", "study.toml"]);
    assert!(said.contains("confounded"), "{said}");
    assert!(said.contains("innodb_io_capacity"), "{said}");
    let shown = lab.show("results/study.ceteris");
    let question = &shown["questions"][0];
    assert_eq!(question["verdict"], "confounded");
    assert_eq!(question["audit"]["ok"], false);
    let names: Vec<&str> = question["audit"]["unexplained"]
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| difference["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"server.variable.innodb_io_capacity"), "{names:?}");
    assert!(question["effects"].as_array().unwrap().iter().all(|e| e["verdict"] == "confounded"));
    lab.assert_nothing_left();
}
