//! `ceteris bench` on a server that is already there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::laboratory::Laboratory;
use crate::private_server::{PASSWORD, PrivateServer};

const SMALL: [&str; 2] = ["--tables=2", "--rows=500"];

/// `ceteris bench` with the password file and small tables.
fn command(lab: &Laboratory, server: &PrivateServer, words: &[&str]) -> Command {
    let mut command = lab.command(&["bench"]);
    command.args(words).args(["--dsn", &server.dsn(), "--password-file", "password"]).args(SMALL);
    command
}

fn bench(lab: &Laboratory, server: &PrivateServer, words: &[&str]) -> Output {
    let output = command(lab, server, words).output().unwrap();
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(!String::from_utf8_lossy(&said).contains(PASSWORD), "the password was printed");
    output
}

/// The same, with a good end; gives standard output.
fn good(lab: &Laboratory, server: &PrivateServer, words: &[&str]) -> String {
    let output = bench(lab, server, words);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {}\n{complaint}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The same, with exit code `code`; gives standard error.
fn bad(lab: &Laboratory, server: &PrivateServer, code: i32, words: &[&str]) -> String {
    let output = bench(lab, server, words);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {complaint}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{words:?}");
    complaint
}

/// A result held against its schema.
fn result(text: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let told: Value = serde_json::from_str(text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&told).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    told
}

#[test]
fn prepare_run_and_cleanup() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    let complaint = bad(&lab, &server, 1, &["oltp_read_write"]);
    assert!(complaint.contains("sbtest1") && complaint.contains("prepare"), "{complaint}");

    assert_eq!(good(&lab, &server, &["oltp_read_write", "prepare"]), "");
    assert_eq!(server.tables(), ["ceteris_bench", "sbtest1", "sbtest2"]);
    let listed: Vec<(String, String)> =
        server.ask("SELECT table_name, state FROM bench.ceteris_bench ORDER BY table_name");
    let ready = |name: &str| (name.to_owned(), "ready".to_owned());
    assert_eq!(listed, [ready("sbtest1"), ready("sbtest2")]);

    let words = ["oltp_read_write", "--time=1", "--warmup=250ms", "-c", "3", "--seed=5"];
    let told = result(&good(&lab, &server, &[&words[..], &["--format=json"]].concat()));
    let transactions = told["transactions"].as_u64().unwrap();
    assert!(transactions > 3);
    let statements = &told["statements"];
    let count = |name: &str| statements[name].as_u64().unwrap();
    assert_eq!(count("total"), count("read") + count("write") + count("other"));
    // Those that began in the warm-up have made some of their statements there.
    assert!(count("read") >= 14 * (transactions - 3) && count("write") > 0);
    assert_eq!(told["interrupted"], false);
    assert_eq!(told["reconnects"], 0);
    assert_eq!(told["workload"]["name"], "oltp_read_write");
    assert_eq!(told["workload"]["options"]["rows"], 500);
    assert_eq!(told["workload"]["foreign_tables"], 0);
    assert_eq!(told["options"]["connections"], 3);
    assert_eq!(told["options"]["seed"], 5);
    assert!(told["server"]["version"].as_str().unwrap().contains("MariaDB"));
    let seconds = told["per_second"].as_array().unwrap();
    let measured = seconds.iter().filter(|second| second["measured"] == true);
    let sum: u64 = measured.map(|second| second["transactions"].as_u64().unwrap()).sum();
    assert_eq!(sum, transactions, "the seconds add up");
    let response = &told["latency_ms"]["response"];
    assert!(response["p50"].as_f64() <= response["p99"].as_f64());
    assert!(!told["histograms"]["response_hdr_base64"].as_str().unwrap().is_empty());
    assert_eq!((&told["ended_early"], &told["steady"]), (&Value::Null, &Value::Null), "a second");
    assert_eq!(told["generator"]["schedule_error_ms"]["p50"], Value::Null, "a closed loop");

    let output = bench(&lab, &server, &[&words[..], &["--histogram"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    for line in ["SQL statistics:", "queries performed:", "Latency (ms):", "95th percentile:"] {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.contains("|****"), "a histogram: {text}");
    assert!(text.contains("generator bound:"), "{text}");
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.contains("tps: ") && talk.contains("(warm-up)") && talk.contains("seed 5"));

    good(&lab, &server, &["oltp_read_write", "prepare"]);
    assert_eq!(server.tables().len(), 3, "made anew");
    good(&lab, &server, &["oltp_read_write", "cleanup"]);
    assert_eq!(server.tables(), Vec::<String>::new());
    good(&lab, &server, &["oltp_read_write", "cleanup"]);
}

#[test]
fn tables_of_others_are_read_but_not_changed() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    server.run("CREATE DATABASE bench");
    if !server.sysbench("oltp_read_write", "prepare") {
        return;
    }
    let checksum = || server.ask::<(String, u64)>("CHECKSUM TABLE bench.sbtest1, bench.sbtest2");
    let before = checksum();

    let complaint = bad(&lab, &server, 1, &["oltp_read_write", "prepare"]);
    assert!(complaint.contains("sbtest1 and 1 more"), "{complaint}");
    assert!(complaint.contains("hint:"), "{complaint}");
    let complaint = bad(&lab, &server, 1, &["oltp_write_only", "--time=1"]);
    assert!(complaint.contains("--write-foreign-tables"), "{complaint}");
    let told = good(&lab, &server, &["oltp_read_only", "--time=1", "--format=json"]);
    let told = result(&told);
    assert_eq!(told["workload"]["foreign_tables"], 2);
    assert!(told["transactions"].as_u64().unwrap() > 0);
    good(&lab, &server, &["oltp_read_only", "cleanup"]);
    assert_eq!(checksum(), before, "rows are as sysbench left them");
    assert_eq!(server.tables(), ["sbtest1", "sbtest2"], "and nothing stands beside them");

    good(&lab, &server, &["oltp_write_only", "--time=1", "--write-foreign-tables"]);
    assert_ne!(checksum(), before);
    let complaint =
        bad(&lab, &server, 1, &["oltp_read_only", "cleanup", "--tables-named=sbtest1,sbtest9"]);
    assert!(complaint.contains("sbtest9"), "{complaint}");
    assert_eq!(server.tables(), ["sbtest1", "sbtest2"], "all or nothing");
    good(&lab, &server, &["oltp_read_only", "cleanup", "--tables-named=sbtest1"]);
    assert_eq!(server.tables(), ["sbtest2"]);
}

#[test]
fn a_table_that_was_made_anew_by_another_is_not_ours_any_more() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    good(&lab, &server, &["oltp_read_only", "prepare"]);
    if server.sysbench("oltp_read_write", "run") {
        server.sysbench("oltp_read_write", "cleanup");
        server.sysbench("oltp_read_write", "prepare");
    } else {
        server.run("DROP TABLE bench.sbtest1");
        server.run("CREATE TABLE bench.sbtest1 (id INT PRIMARY KEY)");
    }
    bad(&lab, &server, 1, &["oltp_read_only", "prepare"]);
    let output = bench(&lab, &server, &["oltp_read_only", "cleanup"]);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("left alone"));
    assert!(server.tables().contains(&"sbtest1".to_owned()));
}

#[test]
fn a_list_that_is_not_ours_makes_nothing_ours() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    good(&lab, &server, &["oltp_read_only", "prepare"]);
    server.run("CREATE TABLE bench.theirs (i INT)");
    server.run("INSERT INTO bench.ceteris_bench VALUES ('theirs', '', '', '', 'ready', NOW())");
    server.run("CREATE VIEW bench.shown AS SELECT 1");
    let words = ["oltp_read_only", "cleanup", "--tables-named=sbtest1,shown"];
    assert!(bad(&lab, &server, 1, &words).contains("no table shown"));
    assert!(server.tables().contains(&"sbtest1".to_owned()), "all or nothing");
    good(&lab, &server, &["oltp_read_only", "cleanup"]);
    assert_eq!(server.tables(), ["shown", "theirs"], "no mark, not ours");
    server.run("CREATE TABLE bench.ceteris_bench (table_name TEXT, mark TEXT, state TEXT)");
    assert!(bad(&lab, &server, 1, &["oltp_read_only", "prepare"]).contains("did not create"));
    good(&lab, &server, &["oltp_read_only", "cleanup"]);
    assert_eq!(server.tables(), ["ceteris_bench", "shown", "theirs"]);
}

#[test]
fn people_from_sysbench_feel_at_home() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    let socket = format!("--mysql-socket={}", server.socket().display());
    let words = [
        "bench",
        "/usr/share/sysbench/oltp_read_only.lua",
        "--mysql-user=tester",
        "--mysql-db=bench",
        &socket,
        "--tables=2",
        "--table_size=500",
        "--threads=2",
        "--time=1",
        "--rand-type=special",
        "--db-ps-mode=auto",
        "--report-interval=0",
        "--percentile=99",
    ];
    for action in ["prepare", "run", "cleanup"] {
        let mut command = lab.command(&words);
        let output = command.arg(action).env("CETERIS_PASSWORD", PASSWORD).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{action}: {talk}");
        assert_eq!(said.contains("99th percentile:"), action == "run", "{said}");
        assert!(!talk.contains("tps: "), "{talk}");
    }
}

#[test]
fn ctrl_c_ends_with_what_was_measured() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    good(&lab, &server, &["oltp_read_only", "prepare"]);
    let mut running = command(&lab, &server, &["oltp_read_only", "--time=600", "--format=json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let arguments = std::fs::read(format!("/proc/{}/cmdline", running.id())).unwrap();
    assert!(!arguments.windows(PASSWORD.len()).any(|at| at == PASSWORD.as_bytes()));
    let talk = BufReader::new(running.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut seconds = talk.filter(|line| line.contains("tps: "));
    assert!(seconds.next().is_some(), "no second was told");
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let rest = seconds.count();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest} more seconds");
    let told = result(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(told["interrupted"], true);
    assert!(told["transactions"].as_u64().unwrap() > 0);
    assert_eq!(told["ended_early"], "stopped by Ctrl-C");
    let response = &told["latency_ms"]["response"];
    assert!(
        response["p95"].as_f64() > Some(0.0)
            && response["p95"].as_f64() <= response["max"].as_f64()
    );
    assert!(told["fairness"]["max"].as_u64() > Some(0));
}

#[test]
fn an_error_ends_a_run_with_what_was_measured() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    good(&lab, &server, &["oltp_read_only", "prepare"]);
    for format in ["json", "text"] {
        let words = ["oltp_read_only", "--time=600", "-c", "1", &format!("--format={format}")];
        let mut running = command(&lab, &server, &words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let talk = BufReader::new(running.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut talk = talk.inspect(|line| eprintln!("{line}"));
        assert!(talk.any(|line| line.contains("tps: ")), "no second was told");
        assert_eq!(server.tables().len(), 3);
        server.run("RENAME TABLE bench.sbtest1 TO bench.away");
        server.run("RENAME TABLE bench.sbtest2 TO bench.away2");
        let rest: Vec<String> = talk.collect();
        let output = running.wait_with_output().unwrap();
        server.run("RENAME TABLE bench.away TO bench.sbtest1");
        server.run("RENAME TABLE bench.away2 TO bench.sbtest2");
        assert_eq!(output.status.code(), Some(1), "{rest:?}");
        let said = |what: &str| rest.iter().any(|line| line.contains(what));
        assert!(said("error: a statement failed") && said("1146"), "{rest:?}");
        assert!(said("hint: oltp_read_only needs the tables sbtest1, sbtest2"), "{rest:?}");
        assert!(said("`ceteris bench oltp_read_only prepare`"), "{rest:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        if format == "text" {
            assert!(printed.starts_with("ended early: a statement failed"), "{printed}");
            assert!(printed.contains("95th percentile:"), "{printed}");
            continue;
        }
        let told = result(&printed);
        assert!(told["ended_early"].as_str().unwrap().contains("1146"), "{told}");
        assert_eq!(told["interrupted"], false);
        assert_eq!(told["errors"], serde_json::json!({ "1146": 1 }));
        assert!(told["transactions"].as_u64().unwrap() > 0);
        let measured_s = told["measured_s"].as_f64().unwrap();
        assert!(measured_s > 1.0 && measured_s < 600.0, "{measured_s}");
    }
}

#[test]
fn the_servers_own_databases_are_left_alone() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    let before = server.ask::<u64>("SELECT COUNT(*) FROM information_schema.tables");
    let database = |name: &str| server.dsn().replace("/bench", &format!("/{name}"));
    for name in ["mysql", "MySQL", "information_schema", "performance_schema", "sys"] {
        let dsn = database(name);
        for words in [&["prepare"][..], &["cleanup", "--tables-named=user"]] {
            let mut command = lab.command(&["bench", "oltp_read_only"]);
            let output =
                command.args(words).args(["--dsn", &dsn, "--password-file", "password"]).output();
            let output = output.unwrap();
            let complaint = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{complaint}");
            assert!(complaint.contains("the server's own"), "{name}: {complaint}");
        }
    }
    assert_eq!(server.ask::<u64>("SELECT COUNT(*) FROM information_schema.tables"), before);
}

#[test]
fn an_option_file_says_who_and_where() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    let socket = server.socket();
    let text =
        format!("[client]\nuser=tester\nsocket={}\npassword=\"{PASSWORD}\"\n", socket.display());
    lab.write("my.cnf", &text);
    for action in ["prepare", "run"] {
        let mut command = lab.command(&["bench", "oltp_read_only", action]);
        let words = ["--defaults-file=my.cnf", "--mysql-db=bench", "--time=1"];
        let output = command.args(words).args(SMALL).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{action}: {talk}");
        assert!(!talk.contains(PASSWORD), "{talk}");
    }
}

#[test]
fn what_is_wrong_is_told_with_the_next_step() {
    let lab = Laboratory::new();
    let ask = |words: &[&str]| {
        let output = lab.command(&["bench"]).args(words).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.stdout, b"", "{words:?}");
        (output.status.code(), complaint)
    };
    for (words, expected) in [
        (&["oltp_red_only", "--dsn=mysql://h"][..], "oltp_read_only"),
        (&["oltp_read_only", "--dsn=mysql://h", "--option=rowz=5"], "allowed: tables, "),
        (&["oltp_read_only", "--dsn=mysql://h", "--rows=many"], "whole number"),
        (&["oltp_read_only", "--dsn=mysql://h", "--rowz=5"], "--rows"),
        (&["oltp_read_only", "--dsn=mysql://h", "--on-lost=cry"], "reconnect"),
        (&["oltp_read_only", "--dsn=mysql://h", "--stage=at=5"], "changes nothing"),
        (&["oltp_read_only", "--dsn=mysql://h", "--events=7"], "possible values: 0"),
        (&["oltp_read_only", "--dsn=mysql://h", "--connections=8k"], "whole number from 1"),
        (&["oltp_read_only", "--dsn=mysql://h", "--report-interval=0.5"], "whole seconds"),
        (&["oltp_read_only", "--dsn=mysql://h", "--stage=at=1,at=2,rate=1"], "`at` twice"),
        (&["oltp_read_only"], "--dsn mysql://"),
        (&["oltp_read_only", "--dsn=mysql://h", "--ask-password"], "--password-file"),
    ] {
        let (code, complaint) = ask(words);
        assert_eq!(code, Some(2), "{words:?}: {complaint}");
        assert!(complaint.contains(expected), "{words:?}: {complaint}");
    }
    let dsn = format!("--dsn=mysql://me:{PASSWORD}@h/t");
    let given = format!("--mysql-password={PASSWORD}");
    let option = format!("--option=mysql_password={PASSWORD}");
    for words in [
        &["oltp_read_only", &dsn][..],
        &["oltp_read_only", "--dsn=mysql://h", &given],
        &["oltp_read_only", "--dsn=mysql://h", &option],
    ] {
        let (code, complaint) = ask(words);
        assert_eq!(code, Some(2), "{complaint}");
        assert!(complaint.contains("--password-file"), "{complaint}");
        assert!(!complaint.contains(PASSWORD), "{complaint}");
    }
    let (code, complaint) = ask(&["oltp_read_only", "--dsn=mysql://h/t?socket=/nowhere/s"]);
    assert_eq!(code, Some(1), "{complaint}");
    assert!(complaint.contains("is the server up"), "{complaint}");
    let Some(server) = PrivateServer::start(&lab) else { return };
    lab.write("password", "wrong\n");
    let complaint = bad(&lab, &server, 1, &["oltp_read_only"]);
    assert!(complaint.contains("check user, password"), "{complaint}");
}

#[test]
fn a_script_is_a_workload_like_any_other() {
    let lab = Laboratory::new();
    let Some(server) = PrivateServer::start(&lab) else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/oltp_read_write.toml");
    let script = path.to_str().unwrap();
    let complaint = bad(&lab, &server, 2, &[script, "--option", "range_sise=5"]);
    assert!(complaint.contains("did you mean `range_size`?"), "{complaint}");
    let complaint = bad(&lab, &server, 1, &[script]);
    assert!(complaint.contains("oltp_read_write.toml prepare"), "{complaint}");

    good(&lab, &server, &[script, "prepare"]);
    assert_eq!(server.tables(), ["ceteris_bench", "sbtest1", "sbtest2"]);
    let words = [script, "--time=1", "-c", "3", "--option", "range_size=5", "--format=json"];
    let told = result(&good(&lab, &server, &words));
    assert!(told["transactions"].as_u64().unwrap() > 0);
    assert_eq!(told["workload"]["name"], "script");
    let options = &told["workload"]["options"];
    assert_eq!(options["params"]["range_size"], 5);
    assert!(options["text"].as_str().unwrap().contains("[[transaction]]"));
    assert_eq!(told["workload"]["foreign_tables"], 0);
    assert_eq!(told["kinds"][0]["name"], "oltp_read_write");
    good(&lab, &server, &[script, "cleanup"]);
    assert_eq!(server.tables(), Vec::<String>::new());
}
