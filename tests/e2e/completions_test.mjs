// POST /v1/completions and GET /v1/models through OpenAI's own client, and what that client makes
// of our errors.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import OpenAI from 'openai';

import { collect, kCapital, kCapitalAnswer } from './answers.mjs';
import { reference, startService } from './service.mjs';

let service;
let client;

before(async () => {
  service = await startService();
  client = service.openai();
});
after(() => service?.stop());

describe('completions', () => {
  const complete = (extra) =>
    client.completions.create({ model: 'krill', temperature: 0, max_tokens: 16, ...extra });

  test('continue token ids', async () => {
    const { prompt_ids } = reference.get('capital');
    const answer = await complete({ prompt: prompt_ids });
    assert.equal(answer.object, 'text_completion');
    assert.match(answer.id, /^cmpl-/);
    assert.equal(answer.choices[0].text, kCapitalAnswer);
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.usage.prompt_tokens, prompt_ids.length);
    const nested = await complete({ prompt: [prompt_ids] });
    assert.equal(nested.choices[0].text, kCapitalAnswer);
  });

  test('continue a text, which never holds control tokens', async () => {
    const { prompt, prompt_ids } = reference.get('capital');
    const answer = await complete({ prompt });
    assert.ok(answer.usage.prompt_tokens > prompt_ids.length);
    const again = await complete({ prompt });
    assert.equal(again.choices[0].text, answer.choices[0].text);
  });

  test('stream as they answer in one piece', async () => {
    const request = { prompt: 'Once upon a time', max_tokens: 24, seed: 3, temperature: 1 };
    const whole = await complete(request);
    const streamed = await collect(
      await complete({ ...request, stream: true, stream_options: { include_usage: true } }),
    );
    assert.equal(streamed.text, whole.choices[0].text);
    assert.equal(streamed.finish, whole.choices[0].finish_reason);
    assert.equal(streamed.usage.completion_tokens, whole.usage.completion_tokens);
  });

  test('have 16 tokens where the request is silent', async () => {
    const answer = await client.completions.create({
      model: 'krill',
      prompt: 'Once upon a time',
      ignore_eos: true,
    });
    assert.equal(answer.usage.completion_tokens, 16);
    assert.equal(answer.choices[0].finish_reason, 'length');
  });

  test('give log-probabilities as parallel lists', async () => {
    const answer = await complete({ prompt: reference.get('capital').prompt_ids, logprobs: 2 });
    const { tokens, token_logprobs, top_logprobs, text_offset } = answer.choices[0].logprobs;
    assert.equal(tokens.join(''), kCapitalAnswer);
    assert.equal(token_logprobs.length, tokens.length);
    assert.equal(text_offset[0], 0);
    assert.equal(text_offset.length, tokens.length);
    for (const top of top_logprobs) assert.equal(Object.keys(top).length, 2);
  });
});

describe('models', () => {
  test('are listed and described', async () => {
    const list = await client.models.list();
    assert.deepEqual(
      list.data.map((model) => model.id),
      ['krill'],
    );
    const model = await client.models.retrieve('krill');
    assert.equal(model.id, 'krill');
    assert.equal(model.object, 'model');
  });

  test('that are not there are not found', async () => {
    await assert.rejects(client.models.retrieve('nope'), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, 'model_not_found');
      return true;
    });
  });
});

describe("the client's own error classes", () => {
  async function refusal(extra, type = OpenAI.BadRequestError) {
    let caught;
    await assert.rejects(
      client.chat.completions.create({ model: 'krill', messages: kCapital, ...extra }),
      (error) => {
        caught = error;
        return true;
      },
    );
    assert.ok(caught instanceof type, `${caught}`);
    return caught;
  }

  test('say that a model is unknown', async () => {
    const error = await refusal({ model: 'gpt-4' }, OpenAI.NotFoundError);
    assert.equal(error.code, 'model_not_found');
    assert.match(error.message, /gpt-4/);
  });

  test('name the field that is out of range', async () => {
    const error = await refusal({ temperature: 3 });
    assert.equal(error.param, 'temperature');
    assert.equal(error.code, 'invalid_request');
    assert.match(error.message, /3/);
  });

  test('name the field that is not there yet', async () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
    for (const [field, value] of [
      ['tools', tools],
      ['n', 2],
      ['response_format', { type: 'json_object' }],
    ]) {
      const error = await refusal({ [field]: value });
      assert.equal(error.code, 'unsupported', field);
      assert.equal(error.param, field);
    }
  });

  test('are the same for a stream', async () => {
    const error = await refusal({ temperature: 3, stream: true });
    assert.equal(error.param, 'temperature');
  });

  test('name the message that is wrong', async () => {
    const error = await refusal({ messages: [...kCapital, { role: 'nobody', content: 'x' }] });
    assert.equal(error.param, 'messages[1].role');
  });
});
