<?php
// Reads JSON values and writes each again: write.php LIBRARY. Framed as tests/java/AvroJudge.java says.

function number(): int
{
    return unpack("N", fread(STDIN, 4))[1];
}

function frame(): string
{
    $size = number();
    return $size ? stream_get_contents(STDIN, $size) : "";
}

// Without preserve_zero_fraction, 1.0 is written as 1; serialize_precision is -1 unless php.ini says otherwise.
$flags = [
    "php" => 0,
    "php-point" => JSON_PRESERVE_ZERO_FRACTION,
    "php-plain" => JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION,
][$argv[1]];
for ($cases = number(); $cases > 0; $cases--) {
    frame();
    for ($values = number(); $values > 0; $values--) {
        $value = json_decode(frame());
        $text = json_last_error() ? null : json_encode($value, $flags);
        fwrite(STDOUT, $text === null ? "\xff\xff\xff\xff" : pack("N", strlen($text)) . $text);
    }
}
