#pragma once

// The style sheet of the card's page.

namespace sluice::record {

inline constexpr const char* kCardStyle = R"css(
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --sheet: #ffffff; --ink: #1d2328; --soft: #67717a; --rule: #e3e1da;
  --baseline: #64748b; --candidate: #0f766e;
  --better: #15803d; --same: #475569; --worse: #b91c1c; --insufficient: #a16207;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181b; --sheet: #1b2024; --ink: #e6e4de; --soft: #98a2ab; --rule: #2c3338;
    --baseline: #94a3b8; --candidate: #2dd4bf;
    --better: #4ade80; --same: #a8b3bf; --worse: #f87171; --insufficient: #facc15;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main { max-width: 1480px; margin: 0 auto; padding: 40px 24px 56px; }
header { display: flex; flex-wrap: wrap; gap: 12px 24px; align-items: flex-end;
  justify-content: space-between; margin-bottom: 28px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 17px; margin: 36px 0 12px; }
h3 { font-size: 14px; margin: 0 0 6px; }
p { margin: 4px 0; } .soft, small, caption { color: var(--soft); }
.side { font-weight: 600; } .baseline-name { color: var(--baseline); }
.candidate-name { color: var(--candidate); }
.badge { display: inline-block; padding: 2px 10px; border-radius: 999px; font-weight: 600;
  font-size: 13px; border: 1px solid currentColor; white-space: nowrap; }
.badge.big { font-size: 20px; padding: 6px 20px; }
.better { color: var(--better); } .same { color: var(--same); } .worse { color: var(--worse); }
.insufficient { color: var(--insufficient); }
.sheet { background: var(--sheet); border: 1px solid var(--rule); border-radius: 10px;
  overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 9px; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
th { font-size: 12px; font-weight: 600; color: var(--soft); }
tr:last-child td { border-bottom: 0; }
th.left, td.left { text-align: left; }
td.wrap { white-space: normal; overflow-wrap: anywhere; }
tbody.pair { border-top: 2px solid var(--rule); }
td.differs { color: var(--candidate); font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 14px; }
.plot { background: var(--sheet); border: 1px solid var(--rule); border-radius: 10px;
  padding: 10px 12px; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 11px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  fill: var(--soft); }
svg text.legend { fill: var(--ink); } svg text.title { fill: var(--ink); font-weight: 600;
  font-size: 13px; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg .baseline { stroke: var(--baseline); } svg .candidate { stroke: var(--candidate); }
svg .whisker { stroke-width: 2; opacity: 0.55; stroke-linecap: round; }
svg .dot { stroke: var(--sheet); stroke-width: 1.5; }
svg .dot.baseline { fill: var(--baseline); } svg .dot.candidate { fill: var(--candidate); }
ul { margin: 6px 0 0; padding-left: 20px; }
footer { margin-top: 40px; font-size: 13px; color: var(--soft); max-width: 78ch; }
@media print { body { background: #fff; } .plot, .sheet { break-inside: avoid; } }
)css";

}  // namespace sluice::record
