//! rdkafka as a reader. Usage: read ADDRESS TOPIC [TIME] | group ADDRESS TOPIC GROUP COUNT IDLE_MS [PROTOCOL]

use std::time::{Duration, Instant};

use clients::Record;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message, Timestamp};
use rdkafka::{Offset, TopicPartitionList};

const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments[1] == "read" {
        let time = arguments.get(4).map(|time| time.parse().expect("a timestamp"));
        read(&arguments[2], &arguments[3], time);
    } else {
        group(&arguments);
    }
}

fn config(address: &str, group: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", address)
        .set("group.id", group)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("fetch.message.max.bytes", "16000000");
    config
}

fn read(address: &str, topic: &str, time: Option<i64>) {
    let consumer: BaseConsumer = config(address, "unused").create().expect("a consumer");
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).expect("metadata");
    let mut places = TopicPartitionList::new();
    for partition in metadata.topics()[0].partitions() {
        let offset = time.map_or(Offset::Beginning, Offset::Offset);
        places.add_partition_offset(topic, partition.id(), offset).expect("a place");
    }
    if time.is_some() {
        places = consumer.offsets_for_times(places, PATIENCE).expect("offsets");
    }
    consumer.assign(&places).expect("an assignment");
    let mut left = places.count();
    while left > 0 {
        match consumer.poll(PATIENCE).expect("a record in time") {
            Ok(message) => tell(&message),
            Err(KafkaError::PartitionEOF(_)) => left -= 1,
            Err(error) => panic!("{error}"),
        }
    }
}

fn group(arguments: &[String]) {
    let mut config = config(&arguments[2], &arguments[4]);
    match arguments.get(7) {
        Some(protocol) => config.set("group.protocol", protocol),
        None => config.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "500"),
    };
    let consumer: BaseConsumer = config.create().expect("a consumer");
    consumer.subscribe(&[&arguments[3]]).expect("a subscription");
    let count: usize = arguments[5].parse().expect("a count");
    let idle = Duration::from_millis(arguments[6].parse().expect("milliseconds"));
    let (mut seen, mut until) = (0, Instant::now() + idle);
    while seen < count && Instant::now() < until {
        match consumer.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => {
                tell(&message);
                consumer.commit_message(&message, CommitMode::Sync).expect("a commit");
                (seen, until) = (seen + 1, Instant::now() + idle);
            }
            None | Some(Err(KafkaError::PartitionEOF(_))) => (),
            Some(Err(error)) => eprintln!("{error}"),
        }
    }
}

fn tell(message: &BorrowedMessage) {
    let (kind, time) = match message.timestamp() {
        Timestamp::NotAvailable => (0, -1),
        Timestamp::CreateTime(time) => (1, time),
        Timestamp::LogAppendTime(time) => (2, time),
    };
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    Record {
        partition: message.partition(),
        offset: message.offset(),
        kind,
        time,
        key: message.key(),
        value: message.payload(),
        headers: headers.map(|header| (header.key, header.value)).collect(),
    }
    .tell();
}
