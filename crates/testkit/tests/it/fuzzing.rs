//! The search for inputs that break something finds some.

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
};
use testkit::Fuzz;

#[test]
fn a_parser_with_a_hole_is_found_out() {
    let folder = std::env::temp_dir().join(format!("tollgate-corpus-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("ping"), b"*1\r\n$4\r\nPING\r\n").expect("a file");
    let mut seen = 0_u64;
    let found = panic::catch_unwind(AssertUnwindSafe(|| {
        Fuzz::from(&folder).run(|input, _| {
            seen += 1;
            assert!(!input.starts_with(b"*-1"), "the hole");
        })
    }));
    fs::remove_dir_all(&folder).expect("the folder removed");
    assert!(found.is_err(), "{seen} inputs, and none went through the hole");
}
