// POST /v1/chat/completions through OpenAI's own client.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { collect, kCapital, kCapitalAnswer, kStory, storyRequest } from './answers.mjs';
import { startService } from './service.mjs';

let service;
let client;

before(async () => {
  service = await startService();
  client = service.openai();
});
after(() => service?.stop());

function ask(extra) {
  return client.chat.completions.create({
    model: 'krill',
    messages: kCapital,
    temperature: 0,
    ...extra,
  });
}

describe('an answer in one piece', () => {
  test('is what the model says, with its usage', async () => {
    const answer = await ask();
    assert.equal(answer.object, 'chat.completion');
    assert.equal(answer.model, 'krill');
    assert.match(answer.id, /^chatcmpl-/);
    assert.ok(Math.abs(answer.created - Date.now() / 1000) < 600);
    assert.ok(answer.system_fingerprint);
    assert.equal(answer.choices.length, 1);
    const [choice] = answer.choices;
    assert.equal(choice.index, 0);
    assert.equal(choice.finish_reason, 'stop');
    assert.equal(choice.logprobs, null);
    assert.equal(choice.message.role, 'assistant');
    assert.equal(choice.message.content, kCapitalAnswer);
    assert.equal(choice.message.refusal, null);
    assert.ok(!('reasoning_content' in choice.message));
    const { usage } = answer;
    assert.equal(usage.prompt_tokens, 11);
    assert.equal(usage.completion_tokens, 8);
    assert.equal(usage.total_tokens, 19);
    assert.equal(usage.prompt_tokens_details.cached_tokens, 0);
    assert.equal(usage.completion_tokens_details.reasoning_tokens, 0);
  });

  test('takes text parts, a system turn and a developer turn', async () => {
    const answer = await ask({
      messages: [
        { role: 'system', content: 'You are a helpful assistant.' },
        { role: 'developer', content: 'Answer in one sentence.' },
        { role: 'user', content: [{ type: 'text', text: kCapital[0].content }] },
      ],
    });
    assert.equal(answer.choices[0].message.role, 'assistant');
    assert.ok(answer.usage.prompt_tokens > 11);
  });

  test('carries its request id, pool and seed in headers', async () => {
    const { response } = await client.chat.completions
      .create({ model: 'krill', messages: kCapital, seed: 5 }, { headers: { 'x-request-id': 'abc-1' } })
      .withResponse();
    assert.equal(response.headers.get('x-request-id'), 'abc-1');
    assert.equal(response.headers.get('x-sluice-seed'), '5');
    assert.ok(response.headers.get('x-sluice-pool'));
  });
});

describe('a stream', () => {
  test('is role, deltas, finish, and usage where asked for', async () => {
    const answer = await collect(
      await ask({ stream: true, stream_options: { include_usage: true } }),
    );
    assert.equal(answer.text, kCapitalAnswer);
    const ids = new Set(answer.chunks.map((chunk) => chunk.id));
    assert.equal(ids.size, 1);
    for (const chunk of answer.chunks) assert.equal(chunk.object, 'chat.completion.chunk');

    const last = answer.chunks.pop();
    assert.deepEqual(last.choices, []);
    assert.equal(last.usage.completion_tokens, 8);
    assert.equal(last.usage.total_tokens, last.usage.prompt_tokens + 8);

    const choices = answer.chunks.map((chunk) => chunk.choices[0]);
    assert.deepEqual(choices[0].delta, { role: 'assistant', content: '' });
    assert.deepEqual(choices.at(-1).delta, {});
    assert.equal(choices.at(-1).finish_reason, 'stop');
    for (const choice of choices.slice(1, -1)) {
      assert.deepEqual(Object.keys(choice.delta), ['content']);
      assert.notEqual(choice.delta.content, '');
      assert.equal(choice.finish_reason, null);
    }
  });

  test('has no usage unless asked for', async () => {
    const answer = await collect(await ask({ stream: true }));
    assert.equal(answer.usage, null);
    assert.equal(answer.chunks.at(-1).choices.length, 1);
  });

  test('says the same as an answer in one piece', async () => {
    const request = storyRequest(11, 60);
    const whole = await client.chat.completions.create(request);
    const streamed = await collect(
      await client.chat.completions.create({ ...request, stream: true }),
    );
    assert.equal(streamed.text, whole.choices[0].message.content);
    assert.equal(streamed.finish, whole.choices[0].finish_reason);
  });

  test("works with the client's own accumulator", async () => {
    const runner = client.chat.completions.stream({
      model: 'krill',
      messages: kCapital,
      temperature: 0,
    });
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.content, kCapitalAnswer);
    assert.equal(final.choices[0].finish_reason, 'stop');
  });
});

describe('an answer ends', () => {
  test('before a stop string, streamed or not', async () => {
    const stop = [' Paris', 'nowhere to be seen'];
    const whole = await ask({ stop });
    assert.equal(whole.choices[0].message.content, 'The capital of France is');
    assert.equal(whole.choices[0].finish_reason, 'stop');
    const streamed = await collect(await ask({ stop: ' Paris', stream: true }));
    assert.equal(streamed.text, 'The capital of France is');
    assert.equal(streamed.finish, 'stop');
  });

  test('before a stop string that spans tokens', async () => {
    const answer = await collect(await ask({ stop: 'e is P', stream: true }));
    assert.equal(answer.text, 'The capital of Franc');
    assert.equal(answer.finish, 'stop');
  });

  test('at max_tokens and max_completion_tokens with "length"', async () => {
    for (const field of ['max_tokens', 'max_completion_tokens']) {
      const answer = await ask({ [field]: 3 });
      assert.equal(answer.choices[0].finish_reason, 'length');
      assert.equal(answer.usage.completion_tokens, 3);
      assert.ok(kCapitalAnswer.startsWith(answer.choices[0].message.content));
    }
  });

  test('at a stop token', async () => {
    const answer = await ask({ stop_token_ids: [1831] });  // " Paris"
    assert.equal(answer.choices[0].message.content, 'The capital of France is');
    assert.equal(answer.choices[0].finish_reason, 'stop');
  });
});

describe('sampling', () => {
  const story = (extra) =>
    client.chat.completions.create({ ...storyRequest(undefined, 40), seed: undefined, ...extra });
  const textOf = (answer) => answer.choices[0].message.content;

  test('repeats a seed and not another', async () => {
    const [first, again, other] = await Promise.all([7, 7, 8].map((seed) => story({ seed })));
    assert.equal(textOf(first), textOf(again));
    assert.notEqual(textOf(first), textOf(other));
  });

  test('repeats a drawn seed that the header told', async () => {
    const { data, response } = await client.chat.completions
      .create({ ...storyRequest(undefined, 40), seed: undefined })
      .withResponse();
    const seed = Number(response.headers.get('x-sluice-seed'));
    assert.ok(Number.isSafeInteger(seed));
    assert.equal(textOf(await story({ seed })), textOf(data));
  });

  test('draws another seed each time', async () => {
    const answers = await Promise.all(
      [1, 2, 3].map(() =>
        client.chat.completions.create({ model: 'krill', messages: kCapital, max_tokens: 1 }).withResponse(),
      ),
    );
    const seeds = answers.map(({ response }) => response.headers.get('x-sluice-seed'));
    assert.equal(new Set(seeds).size, 3);
  });

  test('is greedy with temperature 0, top_k 1 and a tiny top_p alike', async () => {
    const greedy = textOf(await story({ temperature: 0 }));
    assert.equal(textOf(await story({ top_k: 1 })), greedy);
    assert.equal(textOf(await story({ top_p: 1e-6 })), greedy);
    assert.equal(textOf(await story({ min_p: 1 })), greedy);
  });

  test('heeds logit_bias', async () => {
    const banned = await ask({ logit_bias: { 301: -100 } });  // "The"
    assert.ok(!textOf(banned).startsWith('The'));
    const ended = await ask({ logit_bias: { 1: 100 } });  // End of sentence.
    assert.equal(textOf(ended), '');
    assert.equal(ended.choices[0].finish_reason, 'stop');
  });

  test('heeds penalties', async () => {
    const plain = textOf(await story({ temperature: 0, max_tokens: 60 }));
    for (const penalty of [
      { frequency_penalty: 2 },
      { presence_penalty: 2 },
      { repetition_penalty: 1.8 },
    ]) {
      const penalised = textOf(await story({ temperature: 0, max_tokens: 60, ...penalty }));
      assert.notEqual(penalised, plain, JSON.stringify(penalty));
    }
  });
});

describe('log-probabilities', () => {
  const bytesOf = (entries) => Buffer.from(entries.flatMap((entry) => entry.bytes)).toString();

  function checkEntries(entries, top) {
    for (const entry of entries) {
      assert.equal(typeof entry.token, 'string');
      assert.ok(entry.logprob <= 0);
      assert.equal(entry.top_logprobs.length, top);
      const best = entry.top_logprobs.map((each) => each.logprob);
      assert.deepEqual(best, [...best].sort((a, b) => b - a));
      // Greedy: the chosen token is the best one.
      if (top > 0) assert.equal(entry.top_logprobs[0].token, entry.token);
    }
  }

  test('are given for each token of an answer in one piece', async () => {
    const answer = await ask({ logprobs: true, top_logprobs: 3 });
    const { content } = answer.choices[0].logprobs;
    checkEntries(content, 3);
    assert.equal(bytesOf(content), kCapitalAnswer);
  });

  test('are the same in a stream', async () => {
    const whole = await ask({ logprobs: true, top_logprobs: 2 });
    const streamed = await collect(await ask({ logprobs: true, top_logprobs: 2, stream: true }));
    const entries = streamed.chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.deepEqual(entries, whole.choices[0].logprobs.content);
  });

  test('are there without alternatives too', async () => {
    const { choices } = await ask({ logprobs: true });
    checkEntries(choices[0].logprobs.content, 0);
  });
});

describe('thinking', () => {
  const think = (extra) => ask({ max_tokens: 200, ...extra });

  for (const [name, asked] of [
    ['reasoning_effort', { reasoning_effort: 'high' }],
    ['thinking', { thinking: { type: 'enabled' } }],
  ]) {
    test(`asked for by ${name} comes as reasoning_content`, async () => {
      const answer = await think(asked);
      const { message } = answer.choices[0];
      assert.ok(message.reasoning_content.length > 0);
      assert.ok(!message.content.includes('</think>'));
      assert.ok(!message.reasoning_content.includes('</think>'));
      assert.ok(answer.usage.completion_tokens_details.reasoning_tokens > 0);
    });
  }

  test('streams before the answer', async () => {
    const request = { reasoning_effort: 'high' };
    const whole = await think(request);
    const streamed = await collect(await think({ ...request, stream: true }));
    assert.equal(streamed.reasoning, whole.choices[0].message.reasoning_content);
    assert.equal(streamed.text, whole.choices[0].message.content);
    const kinds = streamed.chunks
      .map((chunk) => Object.keys(chunk.choices[0].delta)[0])
      .filter((kind) => kind === 'content' || kind === 'reasoning_content');
    assert.deepEqual(kinds, [...kinds].sort().reverse());  // "reasoning_content" sorts last.
    assert.equal(kinds[0], 'reasoning_content');
  });

  test('is off when asked to be', async () => {
    for (const off of [{ reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }]) {
      const answer = await think(off);
      assert.equal(answer.choices[0].message.content, kCapitalAnswer);
    }
  });
});

describe('a conversation', () => {
  test('finds its earlier turns in the cache', async () => {
    const first = { role: 'user', content: `${'The fox and the dog sat under a tree. '.repeat(40)}Who sat?` };
    const turn = (messages) =>
      client.chat.completions.create({ model: 'krill', messages, temperature: 0, max_tokens: 16 });
    const one = await turn([first]);
    assert.ok(one.usage.prompt_tokens > 256);
    assert.equal(one.usage.prompt_tokens_details.cached_tokens, 0);

    const said = { role: 'assistant', content: one.choices[0].message.content };
    const two = await turn([first, said, ...kStory]);
    const { cached_tokens } = two.usage.prompt_tokens_details;
    assert.ok(cached_tokens >= 256, `${cached_tokens} tokens were found`);
    assert.ok(cached_tokens < two.usage.prompt_tokens);

    // What was found changes nothing: the same again is found whole, and answered the same.
    const again = await turn([first, said, ...kStory]);
    assert.equal(again.choices[0].message.content, two.choices[0].message.content);
  });
});
