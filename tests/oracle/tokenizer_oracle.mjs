// Random texts with the ids that the `tokenizers` library gives them, for tests/text/oracle_test.cc.
//
//   node tokenizer_oracle.mjs TOKENIZER_JSON OUTPUT TEXTS SEED
//
// The output is little-endian: a count, then for each text its bytes, its ids without and its ids
// with added tokens recognised; a count, then for each list of random ids the list and its text.
// A list or a byte string is its length as u32, then its content (ids are i32).
import { readFileSync, writeFileSync } from 'node:fs';
import { Tokenizer } from 'tokenizers';

const [path, output, texts, seed] = process.argv.slice(2);
const description = JSON.parse(readFileSync(path, 'utf8'));
const spellings = description.added_tokens.map((token) => token.content);
const control = Tokenizer.fromString(JSON.stringify(description));
const plain = Tokenizer.fromString(JSON.stringify({ ...description, added_tokens: [] }));

// Mulberry32: small, and the same numbers everywhere.
let state = Number(seed) >>> 0;
function random(below) {
  state = (state + 0x6d2b79f5) >>> 0;
  let x = state;
  x = Math.imul(x ^ (x >>> 15), x | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) % below;
}
const pick = (list) => list[random(list.length)];
const repeat = (make, most) => Array.from({ length: 1 + random(most) }, make).join('');
const between = (first, last) => String.fromCodePoint(first + random(last - first + 1));

// Anything but a surrogate: those can't stand in UTF-8.
function anyCharacter() {
  const planes = [0x7ff, 0xffff, 0x1ffff, 0x10ffff];
  const codePoint = random(pick(planes) + 1);
  return codePoint >= 0xd800 && codePoint <= 0xdfff ? '\ufffd' : String.fromCodePoint(codePoint);
}

const words = ['the', ' The', ' model', 'token', ' Hello', 'WORLD', "don't", " it's", "I'LL", ' naïve', 'éa', 'straße', ' snake_case',
  'camelCase', 'x1y2', 'https://a.bc/d?e=f', 'int main(){\n\treturn 0;\n}', '{"a": [1, 2]}', '</p>', 'a.b', '!abc', ' !abc', '#include <x>'];
const spaces = [' ', ' ', ' ', '  ', '   ', '\t', '\n', '\r', '\r\n', '\n\n', ' \n', '\n ', '\u000b', '\f', '\u0085', '\u00a0', '\u1680',
  '\u2003', '\u200a', '\u2028', '\u2029', '\u202f', '\u205f', '\u3000', '\ufeff', '\u200b', '\u180e'];
const marks = ['\u0301', '\u0308', '\u20dd', '\u0327', '\u093f', '\u0e31', '\ufe0f', '\u{1f3fd}', '\u200d'];
const kana = ['\u3040', '\u3097', '\u3099', '\u309b', '\u309c', '\u30a0', '\u30fb', '\u30fc', '\u30ff'];
const digits = [0x30, 0x660, 0x966, 0xff10, 0x1d7ce];
const blocks = [[0x41, 0x7a], [0xc0, 0x17f], [0x370, 0x3ff], [0x400, 0x4ff], [0x5d0, 0x5ea], [0x600, 0x6ff], [0x900, 0x97f], [0xe01, 0xe5b],
  [0x1c80, 0x1c8f], [0x2000, 0x206f], [0x20a0, 0x20bf], [0x2190, 0x22ff], [0x2150, 0x218b], [0x3000, 0x303f], [0x9f9f, 0x9fff], [0xac00, 0xd7a3],
  [0xfe30, 0xfe6f], [0xff00, 0xffef], [0x10570, 0x105ff], [0x1f300, 0x1faff], [0x20000, 0x2a6df]];
const makers = [
  () => pick(words),
  () => pick(words),
  () => repeat(() => pick(spaces), 4),
  () => repeat(() => ' ', 90),
  () => repeat(() => between(0x61, 0x7a), 12),
  () => repeat(() => pick(['a', 'ab', 'ha', 'ng']), 60),
  () => repeat(() => between(0x30, 0x39), 9),
  () => { const zero = pick(digits); return repeat(() => between(zero, zero + 9), 5); },
  () => pick(['½', '²³', 'Ⅷ', '四', '〇', '㊿', '①']),
  () => repeat(() => pick([...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~']), 6),
  () => repeat(() => pick([...'!-=*_#']), 1).repeat(1 + random(70)),
  () => pick(['，', '。', '「', '…', '—', '€', '→', '∑', '“', '©', '؟', '·']) + pick(['', 'x', '字', '\n', '\r\n']),
  () => repeat(() => between(0x4e00, 0x9fa5), 10),
  () => repeat(() => between(0x3041, 0x30ff), 8),
  () => repeat(() => pick(kana), 3),
  () => repeat(() => pick(['😀', '👩‍👩‍👧', '🇩🇪', '👍🏽', '❤️', '\u{1fae8}']), 3),
  () => pick(['a', 'e', ' ', 'क', '字', '1', '!', '']) + repeat(() => pick(marks), 3),
  () => repeat(() => between(0x00, 0x1f), 3),
  () => between(0x7f, 0x9f),
  () => { const [first, last] = pick(blocks); return repeat(() => between(first, last), 6); },
  () => repeat(anyCharacter, 4),
  () => pick(spellings),
  () => { const spelling = [...pick(spellings)]; return spelling.slice(random(spelling.length), 1 + random(spelling.length)).join(''); },
];

function list32(values) {
  const buffer = Buffer.alloc(4 + 4 * values.length);
  buffer.writeUInt32LE(values.length, 0);
  values.forEach((value, i) => buffer.writeInt32LE(value, 4 + 4 * i));
  return buffer;
}

function bytes(text) {
  const content = Buffer.from(text, 'utf8');
  const length = Buffer.alloc(4);
  length.writeUInt32LE(content.length, 0);
  return Buffer.concat([length, content]);
}

function count(value) {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value, 0);
  return buffer;
}

const chunks = [count(Number(texts))];
const options = { addSpecialTokens: false };
for (let i = 0; i < Number(texts); ++i) {
  const text = repeat(() => pick(makers)(), 8);
  const plainIds = (await plain.encode(text, null, options)).getIds();
  const controlIds = (await control.encode(text, null, options)).getIds();
  chunks.push(bytes(text), list32(plainIds), list32(controlIds));
}

const lists = Math.floor(Number(texts) / 10);
const size = Object.keys(description.model.vocab).length;
chunks.push(count(lists));
for (let i = 0; i < lists; ++i) {
  const ids = Array.from({ length: 1 + random(12) }, () => random(pick([size, 260])));
  chunks.push(list32(ids), bytes(await control.decode(ids, false)));
}
writeFileSync(output, Buffer.concat(chunks));
