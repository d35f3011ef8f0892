// What holds of every foreign server behind a pass-through pool that serves Krill under another name.

import assert from 'node:assert/strict';

import { collect, kCapitalAnswer } from './answers.mjs';

/** `ask` is one question for the capital, through `pool` of `service`. */
export async function answersInOnePiece(service, pool, ask) {
  const { data, response } = await ask().withResponse();
  assert.equal(data.choices[0].message.content, kCapitalAnswer);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.model, 'krill', 'as the client calls it');
  assert.equal(response.headers.get('x-sluice-pool'), pool);
  const row = await service.recordOf(response.headers.get('x-request-id'));
  assert.equal(row.outcome, 'ok');
  assert.equal(row.pool, pool);
  assert.equal(row.prompt_tokens, data.usage.prompt_tokens);
  assert.equal(row.completion_tokens, data.usage.completion_tokens);
}

/** The usage of a stream is there only if it was asked for. */
export async function streamsTheSame(ask) {
  const plain = await collect(await ask({ stream: true }));
  assert.equal(plain.text, kCapitalAnswer);
  assert.equal(plain.finish, 'stop');
  assert.equal(plain.usage, null);
  assert.ok(plain.chunks.every((chunk) => chunk.model === 'krill'));
  const counted = await collect(
    await ask({ stream: true, stream_options: { include_usage: true } }),
  );
  assert.equal(counted.text, kCapitalAnswer);
  assert.ok(counted.usage.completion_tokens > 0);
}
