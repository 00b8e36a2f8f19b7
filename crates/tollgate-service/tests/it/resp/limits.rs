//! `TG.*`: the limits of the rule file.

use super::stage::{numbers, open};
use std::time::Duration;
use testkit::Reply;
use tollgate::Charge;

#[test]
fn a_named_limit_in_milliseconds() {
    let stage = open();
    assert_eq!(stage.numbers("TG.CHECK per-client alice"), [0, 5, 4, -1, 100]);
    assert_eq!(stage.numbers("TG.PEEK per-client alice"), [0, 5, 3, -1, 200]);
    assert_eq!(stage.numbers("tg.check per-client alice 4"), [0, 5, 0, -1, 500]);
    assert_eq!(stage.numbers("TG.CHECK per-client alice 2"), [1, 5, 0, 200, 500]);
    assert_eq!(stage.numbers("TG.CHECK per-client alice 6"), [1, 5, 0, -1, 500], "never");
    assert_eq!(stage.numbers("TG.CHECK per-client alice 0"), [0, 5, 0, -1, 500]);
    assert_eq!(stage.ask("TG.REFUND per-client alice 2").text(), "OK");
    assert_eq!(stage.numbers("TG.PEEK per-client alice 0"), [0, 5, 2, -1, 300]);
    assert_eq!(stage.ask("TG.RESET per-client alice").text(), "OK");
    assert_eq!(stage.numbers("TG.PEEK per-client alice 0"), [0, 5, 5, -1, 0]);
    assert_eq!(stage.numbers("TG.CHECK per-client vip"), [0, 50, 49, -1, 10]);
    assert_eq!(stage.numbers("TG.CHECK forever alice")[4], -1, "no end");
    stage.numbers("TG.CHECK paced alice");
    assert_eq!(stage.numbers("TG.CHECK paced alice"), [1, 5, 4, 100, 100], "nobody is made to wait");
}

#[test]
fn the_library_and_the_door_charge_one_bucket() {
    let stage = open();
    assert_eq!(stage.numbers("TG.CHECK per-client alice 2")[2], 3);
    let rules = stage.decisions.rules();
    let limit = rules.at(0, "alice".into());
    let status = stage.decisions.store().check_one(&Charge::new(limit, "alice").cost(2)).expect("decided");
    assert_eq!(status.remaining(), 1);
    assert_eq!(stage.numbers("TG.CHECK per-client alice")[2], 0);

    let limit = rules.at(1, "x".into());
    let key = [Some("a"), Some("b_c")];
    let status = stage.decisions.store().check_one(&Charge::new(limit, &key)).expect("decided");
    assert_eq!(status.remaining(), 2);
    assert_eq!(stage.numbers("TG.CHECK pairs KEYS 2 a b_c")[2], 1);
}

#[test]
fn keys_of_several_values_stay_apart() {
    let stage = open();
    assert_eq!(stage.numbers("TG.CHECK pairs KEYS 2 a b_c 2")[2], 1);
    assert_eq!(stage.numbers("TG.CHECK pairs KEYS 2 a_b c")[2], 2);
    assert_eq!(stage.numbers("TG.CHECK pairs keys 1 a")[2], 2);
    assert_eq!(stage.numbers("TG.CHECK pairs a")[2], 1, "one of one is that one");
    assert_eq!(stage.numbers("TG.CHECK pairs KEYS 0 1")[2], 2, "one bucket for all");
    assert_eq!(stage.numbers("TG.CHECK pairs KEYS 2")[2], 1, "a key that is called so");
    assert_eq!(stage.ask("TG.RESET pairs KEYS 2 a b_c").text(), "OK");
    assert_eq!(stage.numbers("TG.PEEK pairs KEYS 2 a b_c 0")[2], 3);
    assert_eq!(
        stage.error("TG.CHECK pairs KEYS 3 a b"),
        "ERR KEYS needs how many values follow and then the values: '3' with 2 behind it"
    );
    assert_eq!(
        stage.error("TG.CHECK pairs KEYS 1 a 1 1"),
        "ERR wrong number of arguments for 'tg.check' command: TG.CHECK limit key [cost] | limit KEYS n value \
         [value ...] [cost]"
    );
}

#[test]
fn mistakes_say_what_would_do() {
    let stage = open();
    assert_eq!(
        stage.error("TG.CHECK per-clint alice"),
        "ERR there is no limit \"per-clint\"; did you mean \"per-client\"?"
    );
    assert_eq!(
        stage.error("TG.CHECK per-client alice -1"),
        "ERR '-1' is not a number of units: a whole number from 0 to 4294967295"
    );
    assert_eq!(
        stage.error("TG.CHECK per-client"),
        "ERR wrong number of arguments for 'tg.check' command: TG.CHECK limit key [cost] | limit KEYS n value \
         [value ...] [cost]"
    );
    assert_eq!(stage.error("TG.CHEK per-client a"), "ERR unknown command 'TG.CHEK'; did you mean TG.CHECK?");
    assert_eq!(
        stage.error("TG.CHECK workers a"),
        "ERR the limit 'workers' has slots to hold: TG.ENTER takes one, and TG.LEAVE gives it back"
    );
    assert_eq!(
        stage.error("TG.ENTER pairs a"),
        "ERR the limit \"pairs\" is not a concurrency limit: it has no slots to hold"
    );
    assert_eq!(stage.error("TG.LEAVE workers a x"), "ERR 'x' is not a permit that TG.ENTER gave");
}

#[test]
fn slots_are_held_renewed_and_given_back() {
    let stage = open();
    let enter = || {
        let told = stage.ask("TG.ENTER workers pool");
        let (permit, told) = told.items().split_last().expect("six");
        (numbers(&Reply::Array(told.to_vec())), permit.clone())
    };
    let (told, first) = enter();
    assert_eq!(told[..4], [0, 2, 1, -1]);
    let (told, second) = enter();
    assert_eq!(told[..4], [0, 2, 0, -1]);
    let (told, none) = enter();
    assert_eq!((&told[..4], none), (&[1, 2, 0, -2][..], Reply::Nil), "when somebody leaves");
    assert_eq!(stage.numbers("TG.PEEK workers pool")[0], 1);

    let (first, second) = (first.text(), second.text());
    stage.clock.advance(Duration::from_secs(20));
    assert_eq!(stage.ask(&format!("TG.RENEW workers pool {first}")).integer(), 1);
    stage.clock.advance(Duration::from_secs(20));
    assert_eq!(stage.ask(&format!("TG.RENEW workers pool {second}")).integer(), 0, "its time was up");
    assert_eq!(stage.ask(&format!("TG.LEAVE workers pool {first}")).integer(), 1);
    assert_eq!(stage.ask(&format!("TG.LEAVE workers pool {first}")).integer(), 0);
    assert_eq!(enter().0[2], 1);
}
