//! Where the kernel refuses io_uring, as container runtimes make it, epoll takes its place, and
//! whoever insists is told why.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "drive/scripted.rs"]
mod scripted;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ceteris_load::{
    DriveError, DriveEvent, DriveSpec, Engine, ReactorChoice, Rng, Session, Statement,
    TransactionError, Workload, drive,
};
use scripted::{Act, Scripted};

struct Ping;

impl Workload for Ping {
    fn statements(&self) -> Vec<Statement> {
        Vec::new()
    }

    async fn transaction(&self, s: &mut Session, _: usize, _: Rng) -> Result<(), TransactionError> {
        s.query("DO 1").await.map(|_| ())
    }
}

/// Lets the kernel refuse to make rings for this thread and those that it starts.
fn refuse_rings() {
    let jump = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The number of the system call is the first word of what a filter sees.
        jump((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0, 0),
        jump(
            (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            0,
            1,
            libc::SYS_io_uring_setup as u32,
        ),
        jump(
            (libc::BPF_RET | libc::BPF_K) as u16,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        jump((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}

#[test]
fn a_refused_ring_is_replaced_or_an_error_that_says_what_to_do() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    refuse_rings();
    let spec = |reactor| DriveSpec {
        targets: vec![server.target()],
        connections: 3,
        measure: Duration::from_millis(100),
        engine: Engine { reactor, ..Engine::default() },
        ..DriveSpec::default()
    };
    let go = |spec: &DriveSpec| {
        let mut told = String::new();
        let report = drive(&Ping, spec, &AtomicBool::new(false), &mut |event| {
            if let DriveEvent::Connected { reactor, .. } = event {
                told = reactor;
            }
        });
        report.map(|report| (report, told))
    };
    let (report, told) = go(&spec(ReactorChoice::Auto)).unwrap();
    assert!(report.transactions > 0);
    assert_eq!(told, report.generator.reactor);
    assert!(told.starts_with("epoll (io_uring: Operation not permitted"), "{told}");

    let (report, told) = go(&spec(ReactorChoice::Epoll)).unwrap();
    assert_eq!((told.as_str(), report.generator.reactor.as_str()), ("epoll", "epoll"));

    let error = go(&spec(ReactorChoice::IoUring)).unwrap_err();
    assert!(matches!(error, DriveError::IoUring { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("io_uring_disabled"), "{error:?}");
}
