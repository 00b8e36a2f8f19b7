//! Paced bodies: frames are split, trailers are not held up, nothing is held but one frame.

use super::{
    Record,
    lazy::{Lazy, once},
};
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use proptest::prelude::*;
use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tollgate::{Bandwidth, Clock, PacedBody, Rate, Time};

/// A body of frames that are there when asked for.
#[derive(Debug)]
struct Frames<D = Bytes>(VecDeque<Result<Frame<D>, &'static str>>);

impl<D: Buf + Unpin> Body for Frames<D> {
    type Data = D;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D>, &'static str>>> {
        Poll::Ready(self.0.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let data = self.0.iter().flatten().filter_map(Frame::data_ref);
        SizeHint::with_exact(data.map(|data| data.remaining() as u64).sum())
    }
}

/// 32,000 bytes a second: a chunk is 1,000 and takes 31.25 ms.
fn slow() -> Bandwidth {
    Bandwidth::new(rate())
}

fn rate() -> Rate {
    Rate::per_second(32_000).unwrap()
}

fn data(bytes: usize) -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::data((0..bytes).map(|place| (place % 251) as u8).collect()))
}

fn trailers() -> Result<Frame<Bytes>, &'static str> {
    let mut map = Frame::<Bytes>::trailers(Default::default()).into_trailers().unwrap();
    map.insert("checksum", "7".parse().unwrap());
    Ok(Frame::trailers(map))
}

fn paced<const N: usize>(
    clock: &Lazy,
    bandwidth: Bandwidth,
    frames: [Result<Frame<Bytes>, &'static str>; N],
) -> PacedBody<Frames, Lazy> {
    PacedBody::with_clock(Frames(frames.into()), bandwidth, clock.clone())
}

type Next<B> = Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>;

fn next<B: Body + Unpin>(body: &mut B) -> impl FnMut(&mut Context<'_>) -> Poll<Next<B>> {
    |context| Pin::new(&mut *body).poll_frame(context)
}

/// The length of the next data frame, if one comes without sleeping.
fn ready_data(body: &mut PacedBody<Frames, Lazy>) -> Option<usize> {
    match once(next(body)) {
        Poll::Ready(frame) => Some(frame.unwrap().unwrap().into_data().unwrap().len()),
        Poll::Pending => None,
    }
}

#[test]
fn a_large_frame_goes_in_chunks_and_its_size_is_told_all_along() {
    let clock = Lazy::default();
    let mut body = paced(&clock, slow(), [data(2_500)]);
    let original = body.get_ref().0[0].as_ref().unwrap().data_ref().unwrap().clone();
    let mut begins = 0;
    for (part, left) in [(1_000, 1_500), (1_096, 404), (404, 0)] {
        let frame = clock.drive(next(&mut body)).unwrap().unwrap().into_data().unwrap();
        assert_eq!(frame.len(), part);
        assert_eq!(frame.as_ptr(), original[begins..].as_ptr(), "not a copy");
        begins += part;
        assert_eq!(body.size_hint().exact(), Some(left));
        assert_eq!(body.is_end_stream(), left == 0);
        if left > 0 {
            assert!(once(next(&mut body)).is_pending());
            assert_eq!(body.size_hint().exact(), Some(left), "and while it sleeps");
        }
    }
    assert!(clock.drive(next(&mut body)).is_none());
    assert_eq!(clock.timers(), 2);
}

#[test]
fn small_frames_pass_whole_and_in_order() {
    let clock = Lazy::default();
    let mut body = paced(&clock, slow(), [data(300), data(0), data(400), data(700), data(1)]);
    assert_eq!(
        [ready_data(&mut body), ready_data(&mut body), ready_data(&mut body)],
        [Some(300), Some(0), Some(400)]
    );
    assert_eq!(ready_data(&mut body), Some(300), "as much of the 700 as may go");
    assert_eq!(ready_data(&mut body), None);
    assert_eq!(body.get_ref().0.len(), 1, "no frame is asked for while one is held");
    clock.clock.advance(Duration::from_millis(32));
    assert_eq!([ready_data(&mut body), ready_data(&mut body)], [Some(400), Some(1)]);
    assert!(body.is_end_stream());
}

#[test]
fn the_first_bytes_go_unpaced() {
    let clock = Lazy::default();
    let mut body = paced(&clock, slow().with_after(10_000), [data(9_000), data(9_000)]);
    assert_eq!([ready_data(&mut body), ready_data(&mut body)], [Some(9_000), Some(2_000)]);
    assert_eq!(ready_data(&mut body), None);
}

#[test]
fn trailers_and_the_end_do_not_wait_for_the_pace() {
    let clock = Lazy::default();
    let mut body = paced(&clock, slow(), [data(1_000), trailers()]);
    assert_eq!(ready_data(&mut body), Some(1_000));
    assert!(!body.is_end_stream());
    let Poll::Ready(Some(Ok(frame))) = once(next(&mut body)) else { panic!("trailers have no pace") };
    assert_eq!(frame.into_trailers().unwrap()["checksum"], "7");
    assert!(matches!(once(next(&mut body)), Poll::Ready(None)));
    assert_eq!(clock.timers(), 0);
}

#[test]
fn an_error_in_the_middle_passes_when_what_came_before_has_gone() {
    let clock = Lazy::default();
    let mut body = paced(&clock, slow(), [data(1_500), Err("reset"), data(9)]);
    assert_eq!(ready_data(&mut body), Some(1_000));
    assert_eq!(ready_data(&mut body), None);
    assert_eq!(clock.drive(next(&mut body)).unwrap().unwrap().into_data().unwrap().len(), 500);
    assert!(matches!(once(next(&mut body)), Poll::Ready(Some(Err("reset")))));
    assert_eq!(ready_data(&mut body), Some(9), "whether it goes on is the body's to say");
}

#[test]
fn a_reader_that_stalled_gets_no_more_than_the_largest_burst() {
    let clock = Lazy::default();
    let mut body = paced(&clock, slow(), [data(100_000)]);
    assert_eq!(ready_data(&mut body), Some(1_000));
    clock.clock.advance(Duration::from_secs(3_600));
    assert_eq!([ready_data(&mut body), ready_data(&mut body)], [Some(2_000), None]);
}

#[test]
fn dropped_half_way_it_leaves_no_timer() {
    let clock = Lazy::default();
    let mut body = paced(&clock, slow(), [data(100_000)]);
    assert_eq!([ready_data(&mut body), ready_data(&mut body)], [Some(1_000), None]);
    assert_eq!(clock.clock.next_sleeper(), Some(Time::from_micros(31_250)));
    drop(body);
    assert_eq!(clock.clock.next_sleeper(), None);
}

#[test]
fn data_of_any_kind_is_split() {
    let clock = Lazy::default();
    let frames: VecDeque<_> = [Ok(Frame::data(&b"paced bytes"[..]))].into();
    let rate = Rate::per_second(128).unwrap();
    let mut body = PacedBody::with_clock(Frames(frames), Bandwidth::new(rate), clock.clone());
    let mut parts = Vec::new();
    while let Some(frame) = clock.drive(next(&mut body)) {
        parts.push(frame.unwrap().into_data().unwrap());
    }
    assert_eq!(parts, ["pace", "d by", "tes"]);
}

#[test]
fn a_size_that_is_not_known_stays_unknown() {
    struct Endless;
    impl Body for Endless {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            Poll::Ready(Some(data(5_000)))
        }
    }
    let clock = Lazy::default();
    let mut body = PacedBody::with_clock(Endless, slow(), clock.clone());
    assert!(once(next(&mut body)).is_ready());
    assert_eq!((body.size_hint().lower(), body.size_hint().upper()), (4_000, None));
    assert!(!body.is_end_stream());
}

#[test]
fn it_moves_between_threads_and_can_be_boxed_with_others() {
    fn can<T: Send + Sync + Unpin + 'static>(_: &T) {}
    can(&paced(&Lazy::default(), slow(), [data(1)]));
    can(&PacedBody::new(Frames::<Bytes>([].into()), slow()));
}

proptest! {
    /// Whatever the frames, the bytes come whole and in order, on pace in every window, at most a timer a chunk.
    #[test]
    fn any_frames_are_paced(sizes in prop::collection::vec(0_usize..6_000, 0..30), after in 0_u64..5_000) {
        let clock = Lazy::default();
        let all: usize = sizes.iter().sum();
        let frames = sizes.iter().map(|size| data(*size)).chain([trailers()]).collect();
        let mut body = PacedBody::with_clock(Frames(frames), slow().with_after(after), clock.clone());
        let (record, mut got, mut told) = (Record::default(), Vec::new(), None);
        while let Some(frame) = clock.drive(next(&mut body)) {
            match frame.unwrap().into_data() {
                Ok(data) => {
                    record.note(clock.now(), data.len());
                    got.extend_from_slice(&data);
                }
                Err(other) => told = other.into_trailers().ok(),
            }
            prop_assert_eq!(body.size_hint().exact(), Some((all - got.len()) as u64));
        }
        let expected: Vec<u8> = sizes.iter().flat_map(|size| data(*size).unwrap().into_data().unwrap()).collect();
        prop_assert_eq!(got, expected);
        prop_assert!(told.is_some());
        record.check(rate(), after);
        prop_assert!(clock.timers() <= (all as u64).saturating_sub(after) / 1_000);
    }
}
