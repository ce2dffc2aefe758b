//! `quorba ping`: whether each address of a reference answers, and how fast.

use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::args::duration;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::probe::{Place, Probe, ProbeAnswer, Question};
use crate::reference::{self, Reference};
use crate::text::{age, span_us, table};

const DEADLINE: Duration = Duration::from_secs(30);
/// One answer is not waited for longer than this.
const ANSWER_TIME: Duration = Duration::from_secs(2);
const COUNT_MAX: u32 = 1_000_000;

/// Ask each address of a reference whether the object is there, and time the answers
///
/// `locate` is a LocateRequest, which a gateway answers by itself; `call` is the operation
/// _non_existent, which goes the way of every call, through the servers of the group. Exits with
/// 2 if not every address answers that the object is there, with 1 if none answers.
#[derive(Debug, Args)]
pub struct Ping {
    /// IOR:..., corbaloc:..., corbaname:..., a file that holds one, or - for standard input
    #[arg(value_name = "REF")]
    reference: String,

    /// How often each question is asked of each address
    #[arg(short = 'n', long, default_value_t = 10, value_name = "TIMES")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,

    /// The pause between two questions
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pause: Option<Duration>,

    /// Ask one of the two questions only
    #[arg(long, value_enum, value_name = "QUESTION")]
    only: Option<Only>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    Locate,
    Call,
}

/// What one question gave at one address.
struct Row {
    place: Place,
    question: Question,
    /// Sorted times of answers, in microseconds.
    times_us: Vec<f64>,
    asked: u32,
    /// The last thing that was said which is not "here".
    said: Option<String>,
    /// Why it ended early.
    trouble: Option<String>,
}

impl Ping {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let reference = reference::read(&self.reference)?;
        let deadline = context.deadline(DEADLINE);
        let questions: &[Question] = match self.only {
            None => &[Question::Locate, Question::NonExistent],
            Some(Only::Locate) => &[Question::Locate],
            Some(Only::Call) => &[Question::NonExistent],
        };
        let mut rows = Vec::new();
        for place in reference.places() {
            for question in questions {
                let row = self.measure(&place, *question, deadline);
                let connected = row.asked > 0;
                rows.push(row);
                // What cannot be connected to for one question cannot be for the other.
                if !connected {
                    break;
                }
            }
        }
        show(context, &reference, &rows)?;
        judge(&rows, deadline)
    }

    fn measure(&self, place: &Place, question: Question, deadline: Deadline) -> Row {
        let mut row = Row {
            place: place.clone(),
            question,
            times_us: Vec::new(),
            asked: 0,
            said: None,
            trouble: None,
        };
        let time = ANSWER_TIME.min(deadline.left()).max(Duration::from_millis(1));
        let mut probe = match Probe::connect(place, time) {
            Ok(probe) => probe,
            Err(trouble) => {
                row.trouble = Some(trouble.to_string());
                return row;
            }
        };
        for turn in 0..self.count {
            if turn > 0
                && let Some(pause) = self.pause
            {
                thread::sleep(pause.min(deadline.left()));
            }
            if deadline.has_passed() {
                row.trouble = Some(format!("deadline of {} passed", age(deadline.time)));
                break;
            }
            row.asked += 1;
            match probe.ask(question) {
                Ok((said, time)) => {
                    row.times_us.push(time.as_secs_f64() * 1e6);
                    if let ProbeAnswer::Other(said) = said {
                        row.said = Some(said);
                    }
                }
                Err(trouble) => {
                    row.trouble = Some(trouble.to_string());
                    break;
                }
            }
        }
        row.times_us.sort_by(f64::total_cmp);
        row
    }
}

impl Row {
    fn is_fine(&self) -> bool {
        self.said.is_none() && self.trouble.is_none() && !self.times_us.is_empty()
    }

    /// The time that a share of the answers stayed below (nearest rank).
    fn percentile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.times_us.len() as f64).ceil() as usize;
        self.times_us.get(rank.saturating_sub(1)).copied()
    }

    fn answer(&self) -> String {
        match (&self.trouble, &self.said) {
            (Some(trouble), _) => trouble.clone(),
            (None, Some(said)) => said.clone(),
            (None, None) => "here".to_owned(),
        }
    }
}

const SHARES: [f64; 4] = [0.0, 0.5, 0.99, 1.0];

fn show(context: &Context, reference: &Reference, rows: &[Row]) -> Result<(), Failure> {
    if context.is_json() {
        let rows: Vec<Value> = rows.iter().map(row_json).collect();
        let type_id = reference.type_id();
        return context.print_json(&json!({ "type_id": type_id, "addresses": rows }));
    }
    let cells = rows.iter().map(|row| {
        let mut cells = vec![
            row.place.to_string(),
            format!("{}.{}", row.place.version.major, row.place.version.minor),
            if row.asked == 0 { "connect" } else { row.question.as_str() }.to_owned(),
            format!("{}/{}", row.times_us.len(), row.asked),
        ];
        let time = |share: f64| row.percentile(share).map_or("-".to_owned(), span_us);
        cells.extend(SHARES.map(time));
        cells.push(row.answer());
        cells
    });
    let headings =
        ["ADDRESS", "GIOP", "ASKED", ">ANSWERS", ">MIN", ">p50", ">p99", ">MAX", "ANSWER"];
    context.print(&table(&headings, cells.collect()))
}

fn row_json(row: &Row) -> Value {
    let round = |share: f64| row.percentile(share).map(|us| (us * 10.0).round() / 10.0);
    json!({
        "host": row.place.host,
        "port": row.place.port,
        "giop": format!("{}.{}", row.place.version.major, row.place.version.minor),
        "question": row.question.as_str(),
        "asked": row.asked,
        "answers": row.times_us.len(),
        "here": row.is_fine(),
        "answer": row.answer(),
        "min_us": round(0.0),
        "p50_us": round(0.5),
        "p99_us": round(0.99),
        "max_us": round(1.0),
    })
}

fn judge(rows: &[Row], deadline: Deadline) -> Result<Exit, Failure> {
    if rows.iter().all(Row::is_fine) {
        return Ok(Exit::Ok);
    }
    if rows.iter().any(|row| !row.times_us.is_empty()) {
        return Ok(if deadline.has_passed() { Exit::TimedOut } else { Exit::Degraded });
    }
    let what = "none of the addresses answers".to_owned();
    let next = "check that a gateway or server listens there, and that no firewall is between";
    let reasons: Vec<String> =
        rows.iter().map(|row| format!("{}: {}", row.place, row.answer())).collect();
    let exit = if deadline.has_passed() { Exit::TimedOut } else { Exit::Failed };
    let failure = Failure::new(codes::NO_REPLY, exit, what, next);
    Err(failure.data(json!({ "addresses": reasons })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_giop::Version;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let place =
            Place { host: "h".into(), port: 1, version: Version::V1_2, object_key: Vec::new() };
        let mut row = Row {
            place,
            question: Question::Locate,
            times_us: (1..=10).map(f64::from).collect(),
            asked: 10,
            said: None,
            trouble: None,
        };
        assert_eq!(SHARES.map(|share| row.percentile(share)), [1.0, 5.0, 10.0, 10.0].map(Some));
        row.times_us.clear();
        assert_eq!(row.percentile(0.5), None);
    }
}
