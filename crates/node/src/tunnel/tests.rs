//! Two ends of tunnels over a link that works, is lost, or has somebody at its other end who does
//! what nobody should.

use super::*;
use std::collections::HashSet;

const A: NodeId = NodeId::new(1).unwrap();
const B: NodeId = NodeId::new(2).unwrap();
const C: NodeId = NodeId::new(3).unwrap();

/// Two nodes' tunnels over a link that works.
fn linked() -> ([Arc<Tunnels>; 2], [NewsSender; 2], [NewsReceiver; 2]) {
    let ((to_a, at_a), (to_b, at_b)) = (news(), news());
    let (a_to, b_to) = (to_b.clone(), to_a.clone());
    let a = Tunnels::new(move |_, bytes| a_to.send(News::Message(A, bytes)).is_ok());
    let b = Tunnels::new(move |_, bytes| b_to.send(News::Message(B, bytes)).is_ok());
    ([a, b], [to_a, to_b], [at_a, at_b])
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

/// Sends back whatever comes.
fn echo(begun: Begun) {
    let Begun::Stream(mut stream) = begun else { return };
    tokio::spawn(async move {
        let mut buffer = vec![0; 1000];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            if stream.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    });
}

fn is_empty(tunnels: &Tunnels) -> bool {
    tunnels.state.lock().expect("no holder panics").open.is_empty()
}

#[test]
fn what_is_written_arrives_whole_and_nothing_is_left_behind() {
    run(async {
        let ([a, b], _keep, [at_a, at_b]) = linked();
        tokio::spawn(Arc::clone(&a).run(at_a, drop));
        tokio::spawn(Arc::clone(&b).run(at_b, echo));
        let (mut reader, mut writer) = tokio::io::split(a.open(B));
        let said: Vec<u8> = (0..5_000_000u32).map(|n| (n % 251) as u8).collect();
        let expected = said.clone();
        tokio::spawn(async move {
            writer.write_all(&said).await.expect("it is read");
            writer.shutdown().await.expect("it is open");
        });
        let mut heard = Vec::new();
        reader.read_to_end(&mut heard).await.expect("it ends");
        assert!(heard == expected);
        while !(is_empty(&a) && is_empty(&b)) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn no_more_than_a_window_is_under_way_to_one_who_does_not_read() {
    run(async {
        let ([a, b], _keep, [_at_a, mut at_b]) = linked();
        let mut stream = a.open(B);
        tokio::spawn(async move { stream.write_all(&vec![1; 1 << 20]).await });
        let (mut octets, mut held) = (0, Vec::new());
        let all = async {
            while octets < WINDOW_BYTES {
                let News::Message(_, bytes) = at_b.recv().await.expect("news") else { continue };
                let frame = Frame::decode(bytes).expect("a frame");
                if let What::Data(data) = &frame.what {
                    octets += data.len();
                }
                held.extend(b.hear(A, frame));
            }
        };
        all.await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(at_b.try_recv().is_err());
        assert_eq!((octets, held.len()), (WINDOW_BYTES, 1));
    });
}

#[test]
fn the_end_of_a_link_ends_its_tunnels_and_no_others() {
    run(async {
        let ([a, b], [to_a, _], [at_a, at_b]) = linked();
        tokio::spawn(Arc::clone(&a).run(at_a, drop));
        tokio::spawn(Arc::clone(&b).run(at_b, echo));
        let mut stream = a.open(B);
        let kept = a.open(C);
        stream.write_all(b"hello").await.expect("open");
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.expect("echoed");
        to_a.send(News::Down(B)).expect("it runs");
        assert!(!matches!(stream.read(&mut heard).await, Ok(1..)));
        let open: HashSet<NodeId> =
            a.state.lock().expect("fine").open.keys().map(|key| key.node).collect();
        assert_eq!(open, HashSet::from([C]));
        drop(kept);
    });
}

#[test]
fn one_who_says_too_much_or_opens_too_many_is_refused() {
    run(async {
        let ([_, b], _keep, [mut at_a, _at_b]) = linked();
        let frame = |number, what| Frame { is_senders: true, number, what };
        let mut held: Vec<_> = (0..TUNNELS_PER_NODE_MAX as u64)
            .filter_map(|number| b.hear(A, frame(number, What::Open)))
            .collect();
        assert_eq!(held.len(), TUNNELS_PER_NODE_MAX);
        assert!(b.hear(A, frame(99, What::Open)).is_none());
        let data = Bytes::from(vec![0; DATA_BYTES_MAX]);
        for _ in 0..=WINDOW_BYTES / DATA_BYTES_MAX {
            held.extend(b.hear(A, frame(3, What::Data(data.clone()))));
        }
        let mut reset = HashSet::new();
        while let Ok(News::Message(_, bytes)) = at_a.try_recv() {
            let frame = Frame::decode(bytes).expect("a frame");
            if frame.what == What::Reset {
                reset.insert(frame.number);
            }
        }
        assert_eq!(reset, HashSet::from([3, 99]));
    });
}
