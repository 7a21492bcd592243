//! rskafka as a reader. Usage: read ADDRESS TOPIC. It has neither groups nor offsets by time.

use std::env;

use clients::{tell, Record};
use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};
use rskafka::client::ClientBuilder;

const LARGEST: i32 = 64 << 20;
const WAIT_MS: i32 = 500;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = env::args().skip(2).collect();
    let (address, topic) = (&arguments[0], &arguments[1]);
    let client = ClientBuilder::new(vec![address.clone()]).build().await.expect("a client");
    let topics = client.list_topics().await.expect("topics");
    let found = topics.iter().find(|found| &found.name == topic).expect("the topic");
    for partition in &found.partitions {
        let reader = client
            .partition_client(topic.clone(), *partition, UnknownTopicHandling::Error)
            .await
            .expect("a partition");
        let mut offset = reader.get_offset(OffsetAt::Earliest).await.expect("the first offset");
        let end = reader.get_offset(OffsetAt::Latest).await.expect("the end");
        while offset < end {
            let (records, _) = reader.fetch_records(offset, 1..LARGEST, WAIT_MS).await.expect("records");
            for record in &records {
                tell(Record {
                    partition: *partition,
                    offset: record.offset,
                    kind: 0,
                    time: record.record.timestamp.timestamp_millis(),
                    key: record.record.key.as_deref(),
                    value: record.record.value.as_deref(),
                    headers: record
                        .record
                        .headers
                        .iter()
                        .map(|(name, value)| (name.as_str(), Some(value.as_slice())))
                        .collect(),
                });
                offset = record.offset + 1;
            }
        }
    }
}
