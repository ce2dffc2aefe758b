//! How far the clocks of other nodes are from this one's.
//!
//! What it is not: a way to set them. Invariants: what is told is surely so; how long asking took
//! is in the other node's favour.

use super::relay;
use super::server::{Question, Shared};
use quorba_base::NodeId;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a node is asked.
const EVERY: Duration = Duration::from_secs(30);
/// And one that did not answer: soon after its link is there, an operator looks.
const SOONER: Duration = Duration::from_secs(3);
/// A number of milliseconds, and nothing else.
const ANSWER_BYTES_MAX: usize = 20;

/// What this node's clock shows, in milliseconds since 1970.
fn unix_ms() -> i64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(unix.as_millis()).unwrap_or(i64::MAX)
}

/// The same, for another node.
pub(super) async fn now() -> String {
    unix_ms().to_string()
}

/// By how many milliseconds a clock is ahead at least, or behind if negative, that showed `said`
/// at some time within `took` after this one showed `asked`.
fn ahead_ms(asked: i64, took: Duration, said: i64) -> i64 {
    let answered = asked.saturating_add(i64::try_from(took.as_millis()).unwrap_or(i64::MAX));
    if said > answered {
        said.saturating_sub(answered)
    } else if said < asked {
        said.saturating_sub(asked)
    } else {
        0
    }
}

/// Nothing if the node did not say.
async fn measure(shared: &Shared, node: NodeId) -> Option<i64> {
    let (asked, before) = (unix_ms(), Instant::now());
    let body = relay::get(shared, node, "/v1/clock", ANSWER_BYTES_MAX).await.ok()?;
    let said = std::str::from_utf8(&body).ok()?.parse().ok()?;
    // Both clocks show whole milliseconds: what is cut off is in the other node's favour, too.
    Some(ahead_ms(asked, before.elapsed() + Duration::from_millis(1), said))
}

/// Measures the clock of a node for ever, and tells the data plane.
async fn watch_one(shared: Arc<Shared>, node: NodeId) {
    loop {
        let ahead_ms = measure(&shared, node).await;
        if !(shared.ask)(Question::Clock(node, ahead_ms)) {
            return;
        }
        tokio::time::sleep(if ahead_ms.is_some() { EVERY } else { SOONER }).await;
    }
}

/// Begins to measure the clocks of all others.
pub(super) fn watch(shared: &Arc<Shared>) {
    for peer in shared.peers.iter().filter(|peer| !peer.is_me) {
        tokio::spawn(watch_one(Arc::clone(shared), peer.id));
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::Peer;
    use super::*;
    use crate::tunnel::{Begun, News, Tunnels, news};
    use axum::Router;
    use axum::routing::get;
    use hyper::server::conn::http1;
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    use std::sync::mpsc;

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn how_long_asking_took_is_in_the_others_favour() {
        let took = Duration::from_millis(300);
        let ahead = |said| ahead_ms(10_000, took, said);
        assert_eq!([10_000, 10_150, 10_300].map(ahead), [0; 3]);
        assert_eq!([9_000, 10_301, 20_300].map(ahead), [-1_000, 1, 10_000]);
        // A node may say what it likes.
        assert_eq!((ahead(i64::MAX), ahead(i64::MIN)), (i64::MAX - 10_300, i64::MIN));
    }

    /// What a node hears whose neighbour's clock is `off_ms` ahead, or which says `said` of it.
    fn heard(off_ms: i64, said: Option<&'static str>) -> Option<i64> {
        let (me, other) = (NodeId::new(1).expect("small"), NodeId::new(2).expect("small"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let ((to_me, at_me), (to_other, at_other)) = (news(), news());
            let mine = Tunnels::new(move |_, it| to_other.send(News::Message(me, it)).is_ok());
            let theirs = Tunnels::new(move |_, it| to_me.send(News::Message(other, it)).is_ok());
            let says = move || async move {
                said.map_or_else(|| (unix_ms() + off_ms).to_string(), str::to_owned)
            };
            let routes = Router::new().route("/v1/clock", get(says));
            tokio::spawn(Arc::clone(&mine).run(at_me, drop));
            tokio::spawn(theirs.run(at_other, move |begun| {
                let Begun::Stream(stream) = begun else { return };
                let service = TowerToHyperService::new(routes.clone());
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }));
            let (tell, told) = mpsc::channel();
            let ask = move |question| {
                if let Question::Clock(node, ahead_ms) = question {
                    assert_eq!(node, other);
                    let _ = tell.send(ahead_ms);
                    // Once is enough.
                    return false;
                }
                true
            };
            let peer = |name: &str, id, is_me| Peer { name: name.into(), id, is_me };
            let peers = vec![peer("n1", me, true), peer("n2", other, false)];
            let shared = Shared::new(peers, "".into(), mine, Arc::new(ask));
            watch_one(Arc::new(shared), other).await;
            told.recv().expect("it is told")
        })
    }

    #[test]
    fn a_node_that_says_another_time_is_told_of_and_one_that_says_nonsense_is_not() {
        let ahead = heard(2 * HOUR_MS, None).expect("it said");
        assert!((2 * HOUR_MS - 2_000..=2 * HOUR_MS).contains(&ahead), "{ahead}");
        let behind = heard(-2 * HOUR_MS, None).expect("it said");
        assert!((-2 * HOUR_MS..=2_000 - 2 * HOUR_MS).contains(&behind), "{behind}");
        assert_eq!(heard(0, None), Some(0));
        for nonsense in ["", "noon", "99999999999999999999", "1e9"] {
            assert_eq!(heard(0, Some(nonsense)), None, "{nonsense}");
        }
    }
}
