# Reads JSON values and writes each again: write.rb LIBRARY. Framed as tests/java/AvroJudge.java says.
require "json"

$stdin.binmode
$stdout.binmode

def number = $stdin.read(4).unpack1("N")
def frame = $stdin.read(number) || ""

number.times do
  frame
  number.times do
    value = JSON.parse(frame.force_encoding("UTF-8"))
    text = ARGV[0] == "ruby" ? JSON.generate(value) : JSON.pretty_generate(value)
    $stdout.write([text.bytesize].pack("N"), text)
  end
end
