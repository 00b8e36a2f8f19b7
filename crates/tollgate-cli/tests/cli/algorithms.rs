//! The picture, without colour.

use crate::replay::tollgate;

#[cfg(feature = "demo")]
#[test]
fn the_picture() {
    let ran = tollgate(&["algorithms", "--plain"], "");
    assert_eq!(ran.status.code(), Some(0));
    let picture = String::from_utf8(ran.stdout).unwrap();
    assert!(picture.lines().all(|line| line.chars().count() <= 80), "too wide for a terminal:\n{picture}");
    insta::assert_snapshot!(picture, @r#"
    Nine algorithms, the same requests. On average each allows 10 a second.

                      burst     calm  rush     goes on  burst
                      0 s       1.4 s 2.92 s   3 s      6 s       pass wait no peak
    requests          vvvvvvvvv vvvvv vvvvvvvv|vvvvvvvv vvvvvvvvv   39
    token_bucket      #####~~~. ##### #####~~~|..~..... #####~~~.   20   10  9    9
    leaky_bucket      ##~~~.... ##### ##~~~...|..~..... ##~~~....   11   10 18    6
    smooth_bursty     #~~~..... ##### ########|####~~~. #########   27    6  6   15
    smooth_warming_up #~....... #~~~~ #~......|........ #~.......    4    7 28    5
    fixed_window      ######### ##### ########|######## #########   39    0  0   16
    sliding_log       ######### ##### ########|##...... #########   33    0  6   10
    sliding_window    ######### ##### ########|#....... #########   32    0  7    9
    sliding_counter   ######### ##### ########|#....... #########   32    0  7    9
    concurrency       ##....... ##### ##......|........ ##.......   11    0 28    5

    # allowed   ~ delayed   . denied   | the fixed window ends
    peak: the most requests that start within one second; above 10 is a burst
    buckets hold 5 and delay up to 300 ms; windows last 1 s; 2 in flight for 200 ms

    tollgate demo            run a gateway with clients and watch its decisions
    tollgate replay --help   run your own traffic through one or several of these
    tollgate --help          all other commands
    "#);
}

#[test]
fn a_pipe_is_as_plain_as_asked_for() {
    assert_eq!(tollgate(&["algorithms"], "").stdout, tollgate(&["algorithms", "--plain"], "").stdout);
}
