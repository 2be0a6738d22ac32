//! The drives of `tests/drive` once more, on io_uring.

#[path = "../drive/main.rs"]
mod drive;
