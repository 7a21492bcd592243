//! rdkafka as a reader. Usage: read ADDRESS TOPIC [TIME] | group ADDRESS TOPIC GROUP COUNT IDLE_MS [PROTOCOL]

use std::env;
use std::time::{Duration, Instant};

use clients::{tell, Record};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{ClientConfig, Offset, Timestamp, TopicPartitionList};

const TIMEOUT: Duration = Duration::from_secs(60);

fn config(address: &str, group: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", address)
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("isolation.level", "read_committed")
        .set("receive.message.max.bytes", (128 << 20).to_string());
    config
}

fn shown(message: &BorrowedMessage) {
    let (kind, time) = match message.timestamp() {
        Timestamp::NotAvailable => (0, -1),
        Timestamp::CreateTime(time) => (1, time),
        Timestamp::LogAppendTime(time) => (2, time),
    };
    let headers = message
        .headers()
        .map(|headers| headers.iter().map(|header| (header.key, header.value)).collect())
        .unwrap_or_default();
    tell(Record {
        partition: message.partition(),
        offset: message.offset(),
        kind,
        time,
        key: message.key(),
        value: message.payload(),
        headers,
    });
}

fn read(address: &str, topic: &str, from: Option<i64>) {
    let consumer: BaseConsumer =
        config(address, "reader").set("enable.partition.eof", "true").create().expect("a consumer");
    let metadata = consumer.fetch_metadata(Some(topic), TIMEOUT).expect("metadata");
    for partition in metadata.topics()[0].partitions() {
        let mut assigned = TopicPartitionList::new();
        let mut start = Offset::Beginning;
        if let Some(time) = from {
            assigned.add_partition_offset(topic, partition.id(), Offset::Offset(time)).expect("a time");
            let offsets = consumer.offsets_for_times(assigned, TIMEOUT).expect("offsets");
            start = offsets.elements()[0].offset();
            assigned = TopicPartitionList::new();
        }
        assigned.add_partition_offset(topic, partition.id(), start).expect("an offset");
        consumer.assign(&assigned).expect("an assignment");
        loop {
            match consumer.poll(TIMEOUT).expect("a record") {
                Ok(message) => shown(&message),
                Err(KafkaError::PartitionEOF(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn group(arguments: &[String]) {
    let mut config = config(&arguments[0], &arguments[2]);
    match arguments.get(5) {
        Some(protocol) => config.set("group.protocol", protocol),
        None => config.set("session.timeout.ms", "6000"),
    };
    let consumer: BaseConsumer = config.create().expect("a consumer");
    let count: u64 = arguments[3].parse().expect("a number");
    let idle = Duration::from_millis(arguments[4].parse().expect("a number"));
    consumer.subscribe(&[&arguments[1]]).expect("a subscription");
    let (mut seen, mut until) = (0, Instant::now() + idle);
    while seen < count && Instant::now() < until {
        if let Some(message) = consumer.poll(Duration::from_millis(200)) {
            let message = message.expect("a record");
            shown(&message);
            consumer.commit_message(&message, CommitMode::Sync).expect("a commit");
            seen += 1;
            until = Instant::now() + idle;
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(2).collect();
    match env::args().nth(1).as_deref() {
        Some("read") => {
            let from = arguments.get(2).map(|time| time.parse().expect("a time"));
            read(&arguments[0], &arguments[1], from);
        }
        _ => group(&arguments),
    }
}
