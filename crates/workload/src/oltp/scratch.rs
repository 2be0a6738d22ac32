//! Memory that a thread keeps for statements whose length is not known beforehand, so that sending
//! one allocates nothing. A session encodes what it is given at once; nothing here is held while
//! the answer is awaited.

use std::cell::RefCell;

use load::{Answer, Session};
use wire::Param;

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
    static PARAMS: RefCell<Vec<Param<'static>>> = const { RefCell::new(Vec::new()) };
}

/// Sends the text that `write` puts together.
pub(super) fn query<'s>(session: &'s mut Session, write: impl FnOnce(&mut String)) -> Answer<'s> {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        write(text);
        session.query(text)
    })
}

/// Executes a statement with the parameters that `push` puts together.
pub(super) fn execute<'s>(
    session: &'s mut Session,
    statement: usize,
    push: impl FnOnce(&mut Vec<Param<'static>>),
) -> Answer<'s> {
    PARAMS.with_borrow_mut(|params| {
        params.clear();
        push(params);
        session.execute(statement, params)
    })
}
