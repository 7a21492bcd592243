// Reads JSON values and writes each again: write LIBRARY. Framed as tests/java/AvroJudge.java says.
#include <arpa/inet.h>

#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>

static uint32_t number() {
    uint32_t size;
    std::cin.read(reinterpret_cast<char *>(&size), 4);
    return ntohl(size);
}

static std::string frame() {
    std::string data(number(), 0);
    std::cin.read(data.data(), static_cast<std::streamsize>(data.size()));
    return data;
}

static std::string written(const std::string &library, const std::string &value) {
    if (library == "nlohmann") return nlohmann::ordered_json::parse(value).dump();
    if (library == "nlohmann-sorted") return nlohmann::json::parse(value).dump();
    rapidjson::Document document;
    document.Parse<rapidjson::kParseFullPrecisionFlag>(value.data(), value.size());
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    document.Accept(writer);
    return std::string(buffer.GetString(), buffer.GetSize());
}

int main(int, char **arguments) {
    for (uint32_t cases = number(); cases > 0; cases--) {
        frame();
        for (uint32_t values = number(); values > 0; values--) {
            const std::string text = written(arguments[1], frame());
            const uint32_t size = htonl(static_cast<uint32_t>(text.size()));
            std::cout.write(reinterpret_cast<const char *>(&size), 4) << text;
        }
    }
}
