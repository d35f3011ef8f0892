#include "record/html_text.h"

namespace sluice::record {

std::string escape_html(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        switch (c) {
            case '&': safe += "&amp;"; break;
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '"': safe += "&quot;"; break;
            case '\'': safe += "&#39;"; break;
            default: safe += static_cast<unsigned char>(c) < 0x20 || c == '\x7F' ? ' ' : c;
        }
    }
    return safe;
}

}  // namespace sluice::record
