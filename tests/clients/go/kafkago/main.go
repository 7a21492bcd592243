// segmentio/kafka-go as a reader.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	"clients/arguments"
	"clients/told"
)

func main() {
	arguments.Run(arguments.Reader{Oldest: -1, Read: read, Group: group})
}

func read(address, topic string, from int64) {
	ctx := context.Background()
	client := &kafka.Client{Addr: kafka.TCP(address)}
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	told.Check(err)
	for _, partition := range metadata.Topics[0].Partitions {
		leader, err := kafka.DialLeader(ctx, "tcp", address, topic, partition.ID)
		told.Check(err)
		start, end, err := leader.ReadOffsets()
		told.Check(err)
		if from >= 0 {
			start, err = leader.ReadOffset(time.UnixMilli(from))
			told.Check(err)
		}
		told.Check(leader.Close())
		if start >= 0 && start < end {
			readPartition(address, topic, partition.ID, start, end)
		}
	}
}

// readPartition ends at the last record, or when none comes: the last offsets may be of markers, which kafka-go skips.
func readPartition(address, topic string, partition int, start, end int64) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:        []string{address},
		Topic:          topic,
		Partition:      partition,
		MaxBytes:       64 << 20,
		MaxWait:        200 * time.Millisecond,
		IsolationLevel: kafka.ReadCommitted,
	})
	told.Check(reader.SetOffset(start))
	wait := 10 * time.Second
	for {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		record, err := reader.ReadMessage(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		told.Check(err)
		if record.Offset >= end {
			break
		}
		tell(record)
		if record.Offset+1 == end {
			break
		}
		wait = 3 * time.Second
	}
	told.Check(reader.Close())
}

func tell(record kafka.Message) {
	headers := []told.Header{}
	for _, each := range record.Headers {
		headers = append(headers, told.Header{Name: each.Key, Value: each.Value})
	}
	told.Tell(told.Record{
		Partition: int32(record.Partition),
		Offset:    record.Offset,
		Kind:      0, // kafka-go has no type of timestamps
		Time:      record.Time.UnixMilli(),
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
	})
}

func group(address, topic, name string, count int64, idle time.Duration) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:           []string{address},
		GroupID:           name,
		Topic:             topic,
		StartOffset:       kafka.FirstOffset,
		MaxBytes:          64 << 20,
		MaxWait:           200 * time.Millisecond,
		SessionTimeout:    6 * time.Second,
		HeartbeatInterval: 500 * time.Millisecond,
		IsolationLevel:    kafka.ReadCommitted,
	})
	for seen := int64(0); seen < count; seen++ {
		ctx, cancel := context.WithTimeout(context.Background(), idle)
		record, err := reader.FetchMessage(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		told.Check(err)
		tell(record)
		told.Check(reader.CommitMessages(context.Background(), record))
	}
	told.Check(reader.Close())
}
