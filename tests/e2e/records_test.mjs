// What is known of requests afterwards: rows, where, card, access log, traces.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { runProgram, startService, temporaryFolder } from './service.mjs';
import { waitUntil } from './waiting.mjs';

const kTrace = '4bf92f3577b34da6a3ce929d0e0e4736';
const kParent = '00f067aa0ba902b7';
const exports = [];
let collector;
let service;

const chat = { model: 'krill', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 };

async function json(args) {
  const end = await runProgram([...args, '--url', service.admin, '--json']);
  assert.equal(end.code, 0, end.stderr);
  return end.stdout;
}
async function rowsOf(id) {
  const response = await fetch(`${service.admin}/admin/records?id=${id}`);
  assert.equal(response.status, 200);
  const text = await response.text();
  return text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
}
const spans = () =>
  exports.flatMap((each) => each.resourceSpans[0].scopeSpans[0].spans);

before(async () => {
  collector = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      assert.equal(request.url, '/v1/traces');
      exports.push(JSON.parse(body));
      response.end('{}');
    });
  });
  await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const folder = temporaryFolder();
  const config = path.join(folder, 'sluice.toml');
  writeFileSync(
    config,
    `[[pool]]
name = "stable"
price.hour = 3.6
[record]
access_log = true
otlp_endpoint = "http://127.0.0.1:${collector.address().port}"
`,
  );
  service = await startService(['--config', config], folder);
});
after(async () => {
  await service?.stop();
  collector.close();
});

test('an answer leaves a row with its versions', async () => {
  const response = await service.post('/v1/chat/completions', { ...chat, seed: 7 });
  const id = response.headers.get('x-request-id');
  const body = await response.json();
  assert.equal(response.status, 200);

  const [row, ...others] = await rowsOf(id);
  assert.equal(others.length, 0);
  assert.equal(row.outcome, 'ok');
  assert.equal(row.role, 'answer');
  assert.equal(row.pool, 'stable');
  assert.equal(row.kind, 'seeded');
  assert.equal(row.bucket, '<=16k');
  assert.equal(row.prompt_tokens, body.usage.prompt_tokens);
  assert.equal(row.completion_tokens, body.usage.completion_tokens);
  assert.equal(row.fingerprint, body.system_fingerprint);
  assert.ok(row.ttft_ms > 0 && row.ttft_ms <= row.duration_ms);
  assert.ok(row.cost > 0);
  assert.equal(row.legs.length, 1);

  const where = JSON.parse(await json(['ctl', 'where', id]));
  assert.equal(where.rid, row.rid);
  assert.equal(where.state, 'done');
  assert.equal(where.outcome, 'ok');
  assert.equal(where.legs[0].pool, 'stable');
  assert.equal(where.legs[0].versions.engine, 'native');
  assert.match(where.legs[0].versions.model, /krill/i);
  assert.ok(where.legs[0].versions.hardware);
  assert.equal(where.cache.cached_tokens, row.cached_tokens);

  const versions = JSON.parse(await json(['ctl', 'where', body.system_fingerprint]));
  assert.deepEqual(versions.versions, where.legs[0].versions);
});

test('a refused request leaves a row, too', async () => {
  const response = await service.post('/v1/chat/completions', { ...chat, temperature: 9 });
  assert.equal(response.status, 400);
  await response.arrayBuffer();
  const [row] = await rowsOf(response.headers.get('x-request-id'));
  assert.equal(row.outcome, 'rejected');
  assert.equal(row.error, 'invalid_request');
  assert.equal(row.ttft_ms, null);

  const headers = { 'x-request-id': 'too-early', 'x-sluice-deadline-ms': 'soon' };
  await (await service.post('/v1/chat/completions', chat, { headers })).arrayBuffer();
  assert.equal((await rowsOf('too-early'))[0].outcome, 'rejected');
});

test('a client that goes leaves a row that says so', async () => {
  const abort = new AbortController();
  const headers = { 'x-request-id': 'gone' };
  const body = { ...chat, max_tokens: 4000, stream: true, ignore_eos: true };
  const response = await service.post('/v1/chat/completions', body, {
    headers,
    signal: abort.signal,
  });
  const reader = response.body.getReader();
  await reader.read();
  const live = JSON.parse(await json(['ctl', 'where', 'gone']));
  assert.ok(['prefill', 'decode'].includes(live.state), live.state);
  assert.equal(live.outcome, null);
  assert.equal(live.legs[0].versions.engine, 'native');
  abort.abort();
  await waitUntil('its row is there', async () => (await rowsOf('gone')).length === 1);
  const [row] = await rowsOf('gone');
  assert.equal(row.outcome, 'client_gone');
});

test('a trace goes on through the gateway and reaches the collector', async () => {
  const headers = { traceparent: `00-${kTrace}-${kParent}-01`, 'x-request-id': 'traced' };
  await (await service.post('/v1/chat/completions', chat, { headers })).arrayBuffer();
  const [row] = await rowsOf('traced');
  assert.equal(row.trace_id, kTrace);
  const span = await waitUntil('the collector has the span', () =>
    spans().find((each) => each.traceId === kTrace && each.parentSpanId === kParent),
  );
  assert.equal(span.name, 'POST /v1/chat/completions');
  assert.ok(BigInt(span.endTimeUnixNano) > BigInt(span.startTimeUnixNano));
  const leg = spans().find((each) => each.parentSpanId === span.spanId);
  assert.equal(leg.traceId, kTrace);

  const quiet = { traceparent: `00-${kTrace.replace('4', '5')}-${kParent}-00` };
  await (await service.post('/v1/chat/completions', chat, { headers: quiet })).arrayBuffer();
  await (await service.post('/v1/chat/completions', chat)).arrayBuffer();
  await waitUntil('a later span is there', () => spans().length >= 4);
  assert.ok(!spans().some((each) => each.traceId === kTrace.replace('4', '5')));
});

test('the access log has one JSON line a request', async () => {
  const headers = { 'x-request-id': 'logged' };
  await (await service.post('/v1/chat/completions', chat, { headers })).arrayBuffer();
  const line = await waitUntil('the line is there', () =>
    service.log.split('\n').find((each) => each.includes('"request_id":"logged"')),
  );
  const { access } = JSON.parse(line.slice(line.indexOf('{')));
  assert.equal(access.status, 200);
  assert.equal(access.outcome, 'ok');
  assert.ok(!service.log.includes('Hello'), 'no prompt is logged');
});

test('costs sum to the bill, and the card is made of the rows', async () => {
  const lines = (await json(['ctl', 'records', '--since', '1h'])).trim().split('\n');
  const rows = lines.map((line) => JSON.parse(line));
  assert.ok(rows.length >= 6);
  const sum = rows.reduce((cost, row) => cost + row.cost, 0);
  const answer = ['card', '--baseline', 'stable', '--candidate', 'stable', '--since', '1h'];
  const card = JSON.parse(await json(answer));
  const requests = card.rows.reduce((count, row) => count + row.requests, 0);
  assert.equal(requests, rows.filter((row) => row.pool === 'stable').length);
  // 3.6 an hour is 0.001 a second; the service has run for less than ten minutes.
  assert.ok(sum > 0 && sum < 0.6, `${sum}`);

  const page = path.join(service.folder, 'card.html');
  const end = await runProgram([...answer, '--url', service.admin, '--html', page]);
  assert.equal(end.code, 0, end.stderr);
  assert.match(end.stdout, /stable/);
  assert.match(readFileSync(page, 'utf8'), /<svg/);
});

test('wrong questions are answered with what is wrong', async () => {
  for (const [query, pattern] of [
    ['records?since=yesterday', /since/],
    ['records?sinse=1h', /sinse/],
    ['records?role=both', /role/],
    ['records?limit=-1', /limit/],
    ['records?since=%zz', /escape/],
    ['card?baseline=stable', /candidate/],
    ['card?baseline=a&candidate=b&format=pdf', /format/],
  ]) {
    const response = await fetch(`${service.admin}/admin/${query}`);
    assert.equal(response.status, 400, query);
    assert.match(await response.text(), pattern);
  }
  const missing = await fetch(`${service.admin}/admin/where/nobody`);
  assert.equal(missing.status, 404);
  const end = await runProgram(['ctl', 'where', 'nobody', '--url', service.admin]);
  assert.equal(end.code, 1);
  assert.match(end.stderr, /nobody/);
});

test('a killed gateway loses no failure', async () => {
  const ids = [];
  for (let i = 0; i < 20; ++i) {
    const headers = { 'x-request-id': `refused-${i}` };
    const response = await service.post('/v1/chat/completions', '{', { headers });
    assert.equal(response.status, 400);
    await response.arrayBuffer();
    ids.push(`refused-${i}`);
  }
  const before = service.childPid('gateway');
  process.kill(before, 'SIGKILL');
  await waitUntil('another gateway answers', async () => {
    const pid = service.childPid('gateway');
    if (pid === undefined || pid === before) return false;
    return fetch(`${service.admin}/health`).then(
      (response) => response.ok,
      () => false,
    );
  });
  for (const id of ids) assert.equal((await rowsOf(id)).length, 1, id);
});
