// What a client can do wrong on the wire: each mistake gets a plain answer, disturbs nobody else
// and leaves nothing behind. All of it happens while one decent client reads a long stream.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

import {
  collect,
  kCapital,
  kCapitalAnswer,
  parseEvents,
  storyRequest,
  textOf,
} from './answers.mjs';
import { RawConnection } from './raw_connection.mjs';
import { startService } from './service.mjs';
import { seconds } from './waiting.mjs';

const kChat = '/v1/chat/completions';
const kCompletions = '/v1/completions';
const kBystanderTokens = 400;
const kTogether = { concurrency: 8 };

let service;
let bystander;
let endless;
let expected;

/** A header that goes on and on: ends when the service has had enough. */
async function sendEndlessHeader() {
  const connection = await RawConnection.open(service);
  connection.send('GET /health HTTP/1.1\r\nHost: test\r\nX-Endless: ');
  const drip = setInterval(() => connection.send('x'), 200);
  try {
    await connection.closes(seconds(30));
    return connection.text;
  } finally {
    clearInterval(drip);
  }
}

before(async () => {
  service = await startService();
  const client = service.openai();
  const request = storyRequest(99, kBystanderTokens);
  expected = (await client.chat.completions.create(request)).choices[0].message.content;
  // Both go on from now on, while the tests below do their worst.
  bystander = client.chat.completions.create({ ...request, stream: true }).then(collect);
  endless = sendEndlessHeader();
  endless.catch(() => {}); // Its own test reports it.
});
after(() => service?.stop());

const capital = (extra) => ({ model: 'krill', messages: kCapital, temperature: 0, ...extra });

async function errorOf(response) {
  const { error } = await response.json();
  assert.equal(typeof error.message, 'string');
  assert.notEqual(error.message, '');
  assert.equal(typeof error.type, 'string');
  assert.ok('param' in error);
  return { status: response.status, ...error };
}

async function postError(body, options) {
  return errorOf(await service.post(kChat, body, options));
}

describe('a body', kTogether, () => {
  for (const [what, body] of [
    ['that is no JSON', '{"model": "krill", '],
    ['that is empty', ''],
    ['that is a list', '[]'],
    ['with bytes after its end', '{"model":"krill","messages":[]} x'],
    ['of 10,000 nested arrays', '['.repeat(10_000) + ']'.repeat(10_000)],
    [
      'with 10,000 nested arrays in a field',
      `{"model":"krill","messages":${'['.repeat(10_000)}${']'.repeat(10_000)}}`,
    ],
    [
      'with 10,000 nested objects in an unknown field',
      `{"model":"krill","messages":[],"x":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`,
    ],
    ['that is not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ]) {
    test(`${what} is 400`, async () => {
      const response = await fetch(service.url + kChat, { method: 'POST', body });
      const error = await errorOf(response);
      assert.equal(error.status, 400);
      assert.equal(error.code, 'invalid_request');
    });
  }

  for (const [param, extra] of Object.entries({
    messages: { messages: 'hello' },
    'messages[0]': { messages: ['hello'] },
    'messages[0].content': { messages: [{ role: 'user', content: 7 }] },
    'messages[1].role': { messages: [...kCapital, { content: 'x' }] },
    temperature: { temperature: 'hot' },
    top_p: { top_p: 0 },
    max_tokens: { max_tokens: 1.5 },
    stop: { stop: 5 },
    'stop[1]': { stop: ['a', 5] },
    seed: { seed: 'lucky' },
    stream: { stream: 'yes' },
    'stream_options.include_usage': { stream_options: { include_usage: 1 } },
    logit_bias: { logit_bias: { Paris: 1 } },
    top_logprobs: { logprobs: true, top_logprobs: 21 },
    model: { model: 7 },
  })) {
    test(`with a wrong ${param} is 400 and says where`, async () => {
      const error = await postError(capital(extra));
      assert.equal(error.status, 400);
      assert.equal(error.param, param);
    });
  }

  test('that announces more than the limit is 413 before it is sent', async () => {
    const connection = await RawConnection.open(service);
    connection.send(`POST ${kChat} HTTP/1.1\r\nHost: test\r\nContent-Length: 50331649\r\n\r\n`);
    const answer = await connection.response();
    assert.equal(answer.status, 413);
    assert.equal(JSON.parse(answer.body).error.code, 'payload_too_large');
    await connection.closes();
  });

  test('whose chunks grow beyond the limit is 413', async () => {
    const connection = await RawConnection.open(service);
    connection.send(`POST ${kChat} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n`);
    connection.send('4000000\r\n'); // 64 MiB in one chunk.
    const answer = await connection.response();
    assert.equal(answer.status, 413);
    connection.destroy();
  });

  test('in chunks is read like any other', async () => {
    const text = JSON.stringify(capital());
    const connection = await RawConnection.open(service);
    connection.send(`POST ${kChat} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n`);
    for (const char of text) connection.send(`1\r\n${char}\r\n`);
    connection.send('0\r\n\r\n');
    const answer = await connection.response();
    assert.equal(answer.status, 200);
    assert.equal(JSON.parse(answer.body).choices[0].message.content, kCapitalAnswer);
    connection.destroy();
  });
});

describe('a header', kTogether, () => {
  test('that is too large is 431', async () => {
    const connection = await RawConnection.open(service);
    connection.send(`GET /health HTTP/1.1\r\nHost: test\r\nX-Large: ${'x'.repeat(70_000)}\r\n\r\n`);
    assert.equal((await connection.response()).status, 431);
    await connection.closes();
  });

  for (const [what, head] of [
    [
      'with Content-Length and Transfer-Encoding',
      `POST ${kChat} HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nTransfer-Encoding: chunked`,
    ],
    [
      'with two different Content-Lengths',
      `POST ${kChat} HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nContent-Length: 6`,
    ],
    [
      'with a Content-Length that is no number',
      `POST ${kChat} HTTP/1.1\r\nHost: t\r\nContent-Length: five`,
    ],
    ['without Host', 'GET /health HTTP/1.1\r\nAccept: */*'],
    ['that is not HTTP', 'hello, is anybody there?'],
  ]) {
    test(`${what} is 400 and ends the connection`, async () => {
      const connection = await RawConnection.open(service);
      connection.send(`${head}\r\n\r\n0\r\n\r\n`);
      const answer = await connection.response();
      assert.equal(answer.status, 400);
      assert.ok(JSON.parse(answer.body).error.message);
      await connection.closes();
    });
  }

  test('with an id has it returned', async () => {
    const good = await service.post(kChat, capital(), { headers: { 'x-request-id': 'mine-42' } });
    assert.equal(good.headers.get('x-request-id'), 'mine-42');
    await good.arrayBuffer();
    const bad = await service.post(kChat, capital({ temperature: 9 }), {
      headers: { 'x-request-id': 'mine-43' },
    });
    assert.equal(bad.headers.get('x-request-id'), 'mine-43');
    await bad.arrayBuffer();
    const long = await service.post(kChat, capital(), {
      headers: { 'x-request-id': 'x'.repeat(200) },
    });
    assert.ok(long.headers.get('x-request-id').length <= 128);
    await long.arrayBuffer();
  });

  test('with a deadline that makes no sense is 400', async () => {
    for (const value of ['soon', '0', '-5', '1.5', '']) {
      const error = await postError(capital(), { headers: { 'x-sluice-deadline-ms': value } });
      assert.equal(error.status, 400, value);
      assert.equal(error.param, 'x-sluice-deadline-ms');
    }
  });

  test('with a deadline that passes is 504', async () => {
    const body = storyRequest(1, 100_000);
    const error = await postError(body, { headers: { 'x-sluice-deadline-ms': '50' } });
    assert.equal(error.status, 504);
    assert.equal(error.code, 'deadline_exceeded');
  });

  test('with a deadline that passes in mid-stream ends it with an error', async () => {
    const response = await service.post(kChat, storyRequest(1, 100_000, { stream: true }), {
      headers: { 'x-sluice-deadline-ms': '500' },
    });
    const events = parseEvents(await response.text());
    assert.equal(events.at(-1).error.code, 'deadline_exceeded');
    for (const event of events) assert.ok(!event.choices?.[0]?.finish_reason);
  });
});

describe('an address', kTogether, () => {
  for (const [method, path, allow] of [
    ['GET', kChat, 'POST'],
    ['PUT', kChat, 'POST'],
    ['DELETE', kCompletions, 'POST'],
    ['POST', '/v1/models', 'GET, HEAD'],
    ['POST', '/v1/models/krill', 'GET, HEAD'],
    ['POST', '/health', 'GET, HEAD'],
  ]) {
    test(`${path} does not take ${method}`, async () => {
      const response = await fetch(service.url + path, { method });
      assert.equal(response.headers.get('allow'), allow);
      const error = await errorOf(response);
      assert.equal(error.status, 405);
      assert.equal(error.code, 'method_not_allowed');
    });
  }

  for (const path of [
    '/',
    '/v1',
    '/v1/chat/completions/',
    '/v1/embeddings',
    '/metrics',
    '/..%2f',
  ]) {
    test(`${path} is not there`, async () => {
      const error = await errorOf(await fetch(service.url + path));
      assert.equal(error.status, 404);
      assert.equal(error.code, 'not_found');
    });
  }

  test('/health answers GET and HEAD', async () => {
    assert.equal((await fetch(`${service.url}/health`)).status, 200);
    const head = await fetch(`${service.url}/health`, { method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.equal(await head.text(), '');
  });

  test('/ready says 200 while a worker can answer', async () => {
    assert.equal(await service.readyStatus(), 200);
  });
});

describe('a request', kTogether, () => {
  test('for an unknown model is 404', async () => {
    const error = await postError(capital({ model: 'other' }));
    assert.equal(error.status, 404);
    assert.equal(error.code, 'model_not_found');
    assert.equal(error.param, 'model');
  });

  test('beyond the context is 400 with both numbers', async () => {
    const response = await service.post(kCompletions, {
      model: 'krill',
      prompt: Array(1000).fill(301),
      max_tokens: 131_000,
    });
    const error = await errorOf(response);
    assert.equal(error.status, 400);
    assert.equal(error.code, 'context_length_exceeded');
    assert.match(error.message, /\b1000\b/);
    assert.match(error.message, /\b131072\b/);
  });

  test('with a prompt beyond the context is 400 with both numbers', async () => {
    const response = await service.post(kCompletions, {
      model: 'krill',
      prompt: Array(131_073).fill(301),
      max_tokens: 1,
    });
    const error = await errorOf(response);
    assert.equal(error.status, 400);
    assert.match(error.message, /\b131073\b/);
    assert.match(error.message, /\b131072\b/);
  });

  test('with ids outside the vocabulary is 400 and says which', async () => {
    const response = await service.post(kCompletions, { model: 'krill', prompt: [1, 2, 4096] });
    const error = await errorOf(response);
    assert.equal(error.status, 400);
    assert.equal(error.param, 'prompt[2]');
  });
});

describe('a connection', kTogether, () => {
  test('carries several requests', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (method, path, body) =>
      new Promise((resolve, reject) => {
        const request = http.request(`${service.url}${path}`, { method, agent }, (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (part) => (text += part));
          response.on('end', () =>
            resolve({ text, status: response.statusCode, reused: request.reusedSocket }),
          );
        });
        request.on('error', reject).end(body);
      });
    assert.equal((await ask('GET', '/health')).reused, false);
    const chat = await ask('POST', kChat, JSON.stringify(capital()));
    assert.equal(chat.reused, true);
    assert.equal(JSON.parse(chat.text).choices[0].message.content, kCapitalAnswer);
    const stream = await ask('POST', kChat, JSON.stringify(capital({ stream: true })));
    assert.equal(stream.reused, true);
    assert.equal(textOf(parseEvents(stream.text)), kCapitalAnswer);
    const mistake = await ask('POST', kChat, '{');
    assert.deepEqual([mistake.status, mistake.reused], [400, true]);
    assert.equal((await ask('GET', '/health')).reused, true);
    agent.destroy();
  });

  test('carries pipelined requests in order', async () => {
    const connection = await RawConnection.open(service);
    connection.send(
      'GET /health HTTP/1.1\r\nHost: t\r\n\r\n' +
        'GET /nowhere HTTP/1.1\r\nHost: t\r\n\r\n' +
        'GET /v1/models HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n',
    );
    assert.equal((await connection.response()).status, 200);
    assert.equal((await connection.response()).status, 404);
    assert.match((await connection.response()).body, /krill/);
    await connection.closes();
  });

  test('of HTTP/1.0 ends with its answer', async () => {
    const connection = await RawConnection.open(service);
    const body = JSON.stringify(capital({ stream: true }));
    connection.send(`POST ${kChat} HTTP/1.0\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await connection.closes();
    const events = parseEvents(connection.text.slice(connection.text.indexOf('\r\n\r\n') + 4));
    assert.equal(textOf(events), kCapitalAnswer);
    assert.equal(events.at(-1), '[DONE]');
  });

  test('of curl shows a stream', async () => {
    const { stdout } = await promisify(execFile)('curl', [
      '-sSN',
      '--max-time',
      String(seconds(20) / 1000),
      service.url + kChat,
      '-H',
      'Content-Type: application/json',
      '-d',
      JSON.stringify(capital({ stream: true })),
    ]);
    const events = parseEvents(stdout);
    assert.equal(textOf(events), kCapitalAnswer);
    assert.equal(events.at(-1), '[DONE]');
  });
});

describe('after all these mistakes', () => {
  test('the bystander has its whole answer', { timeout: seconds(60) }, async () => {
    const answer = await bystander;
    assert.equal(answer.text, expected);
    assert.equal(answer.finish, 'length');
  });

  test('a header that never ends was given up in time', { timeout: seconds(60) }, async () => {
    assert.match(await endless, /^HTTP\/1\.1 408 /);
  });

  test('nothing is left behind', () => service.becomesIdle());

  test('the log holds no error', () => assert.deepEqual(service.errorLines, []));

  test('each refusal was counted', async () => {
    const metrics = await service.metrics();
    assert.ok(metrics.value('sluice_requests_total', { outcome: 'rejected' }) > 20);
    assert.equal(metrics.value('sluice_requests_total', { outcome: 'error' }), 0);
    assert.ok(metrics.value('sluice_requests_total', { outcome: 'timeout_decode' }) >= 1);
  });
});
