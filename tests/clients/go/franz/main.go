// franz-go as a reader.
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"clients/arguments"
	"clients/told"
)

func main() {
	arguments.Run(arguments.Reader{Oldest: -1, Read: read, Group: group})
}

func options(address string, more ...kgo.Opt) []kgo.Opt {
	return append(more, kgo.SeedBrokers(address), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

func read(address, topic string, from int64) {
	ctx := context.Background()
	asking, err := kgo.NewClient(options(address)...)
	told.Check(err)
	defer asking.Close()
	admin := kadm.NewClient(asking)
	ends, err := admin.ListEndOffsets(ctx, topic)
	told.Check(err)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if from >= 0 {
		starts, err = admin.ListOffsetsAfterMilli(ctx, from, topic)
	}
	told.Check(err)
	left := map[int32]int64{}
	places := map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		told.Check(end.Err)
		start, _ := starts.Lookup(topic, end.Partition)
		told.Check(start.Err)
		if start.Offset < end.Offset {
			left[end.Partition] = end.Offset
			places[end.Partition] = kgo.NewOffset().At(start.Offset)
		}
	})
	reading, err := kgo.NewClient(options(address, kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: places}))...)
	told.Check(err)
	defer reading.Close()
	for len(left) > 0 {
		fetches := reading.PollFetches(ctx)
		told.Check(fetches.Err0())
		fetches.EachError(func(_ string, _ int32, err error) { told.Check(err) })
		fetches.EachRecord(func(record *kgo.Record) {
			if !record.Attrs.IsControl() {
				tell(record)
			}
			if record.Offset+1 >= left[record.Partition] {
				delete(left, record.Partition)
			}
		})
	}
}

func tell(record *kgo.Record) {
	headers := []told.Header{}
	for _, each := range record.Headers {
		headers = append(headers, told.Header{Name: each.Key, Value: each.Value})
	}
	told.Tell(told.Record{
		Partition: record.Partition,
		Offset:    record.Offset,
		Kind:      int(record.Attrs.TimestampType()) + 1,
		Time:      record.Timestamp.UnixMilli(),
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
	})
}

func group(address, topic, name string, count int64, idle time.Duration) {
	reading, err := kgo.NewClient(options(
		address,
		kgo.ConsumerGroup(name),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.DisableAutoCommit(),
	)...)
	told.Check(err)
	until := time.Now().Add(idle)
	for seen := int64(0); seen < count && time.Now().Before(until); {
		ctx, cancel := context.WithDeadline(context.Background(), until)
		fetches := reading.PollFetches(ctx)
		cancel()
		fetches.EachRecord(func(record *kgo.Record) {
			tell(record)
			seen++
			until = time.Now().Add(idle)
		})
		told.Check(reading.CommitUncommittedOffsets(context.Background()))
	}
	reading.Close()
}
