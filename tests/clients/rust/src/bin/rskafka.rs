//! rskafka as a reader. Usage: read ADDRESS TOPIC [TIME]

use chrono::DateTime;
use clients::Record;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (address, topic) = (arguments[2].clone(), arguments[3].clone());
    let start = match arguments.get(4) {
        None => OffsetAt::Earliest,
        Some(time) => {
            let millis = time.parse().expect("a timestamp");
            OffsetAt::Timestamp(DateTime::from_timestamp_millis(millis).expect("a time"))
        }
    };
    let client = ClientBuilder::new(vec![address]).build().await.expect("a client");
    let topics = client.list_topics().await.expect("topics");
    let found = topics.into_iter().find(|found| found.name == topic).expect("the topic");
    for partition in found.partitions {
        let reading = client
            .partition_client(topic.clone(), partition, UnknownTopicHandling::Error)
            .await
            .expect("a partition");
        let end = reading.get_offset(OffsetAt::Latest).await.expect("the end");
        let mut next = reading.get_offset(start).await.expect("the start");
        while next >= 0 && next < end {
            let (records, _) = reading.fetch_records(next, 1..16_000_000, 1_000).await.expect("records");
            for found in records {
                next = found.offset + 1;
                tell(partition, found.offset, &found.record);
            }
        }
    }
}

fn tell(partition: i32, offset: i64, record: &rskafka::record::Record) {
    let headers = record.headers.iter();
    Record {
        partition,
        offset,
        kind: 0, // rskafka has no type of timestamps
        time: record.timestamp.timestamp_millis(),
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: headers.map(|(name, value)| (name.as_str(), Some(value.as_slice()))).collect(),
    }
    .tell();
}
