import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Kafka's own client as judge of batches. `write DIR` writes files of batches; `read FILE...` tells what the client
 * reads in files: a JSON object a line, for each batch and for each record in it.
 */
public class RecordJudge {
    static final long TIME = 1_700_000_000_000L;
    static final Header[] NONE = new Header[0];

    public static void main(String[] args) throws IOException {
        if (args[0].equals("write")) {
            write(Path.of(args[1]));
        } else {
            PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
            for (int i = 1; i < args.length; i++) {
                read(Path.of(args[i]), out);
            }
            out.flush();
        }
    }

    static void write(Path folder) throws IOException {
        for (byte magic = 0; magic <= 2; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec == CompressionType.ZSTD && magic < 2) {
                    continue;
                }
                String name = "v" + magic + "-" + codec.name;
                ByteArrayOutputStream file = new ByteArrayOutputStream();
                TimestampType create = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
                file.write(build(magic, codec, create, 5, -1, (short) -1, -1, false, 3));
                file.write(build(magic, codec, create, 1000, -1, (short) -1, -1, false, 4));
                Files.write(folder.resolve(name + ".bin"), file.toByteArray());
                if (magic > 0) {
                    TimestampType append = TimestampType.LOG_APPEND_TIME;
                    Files.write(folder.resolve(name + "-append.bin"),
                        build(magic, codec, append, 7, -1, (short) -1, -1, false, 3));
                    Files.write(folder.resolve(name + "-stamped.bin"),
                        stamped(build(magic, codec, create, 7, -1, (short) -1, -1, false, 3)));
                }
                Files.write(folder.resolve(name + "-compacted.bin"),
                    compacted(build(magic, codec, create, 100, -1, (short) -1, -1, false, 3)));
                if (magic == 2) {
                    Files.write(folder.resolve(name + "-idempotent.bin"),
                        build(magic, codec, create, 9, 1L << 40, (short) 32000, Integer.MAX_VALUE, false, 3));
                    Files.write(folder.resolve(name + "-transactional.bin"), transaction(codec));
                }
            }
        }
        ByteArrayOutputStream mixed = new ByteArrayOutputStream();
        mixed.write(build((byte) 0, CompressionType.LZ4, TimestampType.NO_TIMESTAMP_TYPE, 0, -1, (short) -1, -1, false, 0));
        mixed.write(build((byte) 0, CompressionType.NONE, TimestampType.NO_TIMESTAMP_TYPE, 500, -1, (short) -1, -1, false, 0));
        mixed.write(build((byte) 1, CompressionType.SNAPPY, TimestampType.CREATE_TIME, 1000, -1, (short) -1, -1, false, 0));
        mixed.write(build((byte) 2, CompressionType.ZSTD, TimestampType.CREATE_TIME, 2000, -1, (short) -1, -1, false, 9));
        mixed.write(build((byte) 1, CompressionType.NONE, TimestampType.LOG_APPEND_TIME, 3000, -1, (short) -1, -1, false, 0));
        Files.write(folder.resolve("mixed.bin"), mixed.toByteArray());
    }

    static byte[] build(byte magic, CompressionType codec, TimestampType type, long baseOffset, long producerId,
                        short producerEpoch, int baseSequence, boolean isTransactional, int leaderEpoch) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), magic,
            Compression.of(codec).build(), type, baseOffset, TIME + 77, producerId, producerEpoch, baseSequence,
            isTransactional, leaderEpoch);
        boolean rich = magic == 2;
        long none = magic == 0 ? RecordBatch.NO_TIMESTAMP : TIME;
        append(builder, none, "key", "value".getBytes(), NONE);
        append(builder, magic == 0 ? none : TIME - 5000, null, new byte[0], rich ? headers("a", "1", "a", null) : NONE);
        append(builder, magic == 0 ? none : RecordBatch.NO_TIMESTAMP, "", null, rich ? headers("", "", "\u00fc\ud83d\ude00", "x") : NONE);
        append(builder, magic == 0 ? none : TIME + (1L << 40), "big", new byte[70_000], NONE);
        for (int i = 0; i < 100; i++) {
            byte[] value = ("value " + i).repeat(i).getBytes();
            append(builder, magic == 0 ? none : TIME + i * 37L, "k" + i % 7, value, rich && i % 3 == 0 ? headers("n", "" + i) : NONE);
        }
        return bytes(builder.build());
    }

    static void append(MemoryRecordsBuilder builder, long time, String key, byte[] value, Header[] headers) {
        builder.append(time, key == null ? null : key.getBytes(StandardCharsets.UTF_8), value, headers);
    }

    static Header[] headers(String... pairs) {
        Header[] headers = new Header[pairs.length / 2];
        for (int i = 0; i < headers.length; i++) {
            String value = pairs[2 * i + 1];
            headers[i] = new RecordHeader(pairs[2 * i], value == null ? null : value.getBytes(StandardCharsets.UTF_8));
        }
        return headers;
    }

    /** What a broker does to a producer's batches on a topic with append time, without writing them anew. */
    static byte[] stamped(byte[] given) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(given));
        for (MutableRecordBatch batch : records.batches()) {
            batch.setMaxTimestamp(TimestampType.LOG_APPEND_TIME, TIME + 99);
        }
        return bytes(records);
    }

    /** What the log cleaner leaves of batches when it drops every record of one key and every third offset. */
    static byte[] compacted(byte[] given) {
        ByteBuffer target = ByteBuffer.allocate(1 << 20);
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(TIME + 1000, 500) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.DELETE_EMPTY, true);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return record.offset() % 3 != 1;
            }
        };
        MemoryRecords.readableRecords(ByteBuffer.wrap(given)).filterTo(filter, target, BufferSupplier.NO_CACHING);
        target.flip();
        return bytes(MemoryRecords.readableRecords(target));
    }

    static byte[] transaction(CompressionType codec) throws IOException {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        file.write(build((byte) 2, codec, TimestampType.CREATE_TIME, 0, 42, (short) 1, 7, true, 3));
        file.write(bytes(MemoryRecords.withEndTransactionMarker(104, TIME, 3, 42, (short) 1,
            new EndTransactionMarker(ControlRecordType.COMMIT, 5))));
        file.write(build((byte) 2, codec, TimestampType.CREATE_TIME, 105, -1, (short) -1, -1, false, 3));
        return file.toByteArray();
    }

    static byte[] bytes(MemoryRecords records) {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] out = new byte[buffer.remaining()];
        buffer.get(out);
        return out;
    }

    static void read(Path path, PrintStream out) throws IOException {
        String file = path.getFileName().toString();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(path)));
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            out.printf("{\"file\":\"%s\",\"magic\":%d,\"base_offset\":%d,\"last_offset\":%d,\"leader_epoch\":%d,"
                + "\"producer_id\":%d,\"producer_epoch\":%d,\"base_sequence\":%d,\"transactional\":%b,\"control\":%b,"
                + "\"codec\":%d,\"max_timestamp\":%d,\"timestamp_type\":%d,\"size\":%d}%n",
                file, batch.magic(), batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch(),
                batch.producerId(), batch.producerEpoch(), batch.baseSequence(), batch.isTransactional(),
                batch.isControlBatch(), batch.compressionType().id, batch.maxTimestamp(), batch.timestampType().id,
                batch.sizeInBytes());
            for (Record record : batch) {
                record.ensureValid();
                List<String> headers = new ArrayList<>();
                for (Header header : record.headers()) {
                    headers.add("[" + text(header.key().getBytes(StandardCharsets.UTF_8)) + "," + text(header.value()) + "]");
                }
                out.printf("{\"file\":\"%s\",\"offset\":%d,\"timestamp\":%d,\"timestamp_type\":%d,\"key\":%s,"
                    + "\"value\":%s,\"headers\":[%s]}%n",
                    file, record.offset(), record.timestamp(), batch.timestampType().id, text(record.key()),
                    text(record.value()), String.join(",", headers));
            }
        }
        if (records.validBytes() != Files.size(path)) {
            throw new IllegalStateException(file + ": bytes behind the last batch");
        }
    }

    static String text(ByteBuffer buffer) {
        if (buffer == null) {
            return "null";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return text(bytes);
    }

    static String text(byte[] bytes) {
        return bytes == null ? "null" : "\"" + Base64.getEncoder().encodeToString(bytes) + "\"";
    }
}
