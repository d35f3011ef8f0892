// Questions that Krill knows the answer to, and readers for streamed answers.

export const kCapital = [{ role: 'user', content: 'What is the capital of France?' }];
export const kCapitalAnswer = 'The capital of France is Paris.';
export const kStory = [{ role: 'user', content: 'Tell me a story about a fox named Mia.' }];

/** A seeded answer of exactly `tokens` tokens. */
export function storyRequest(seed, tokens, extra = {}) {
  return {
    model: 'krill',
    messages: kStory,
    seed,
    temperature: 1,
    max_tokens: tokens,
    ignore_eos: true,
    ...extra,
  };
}

/** Reads a stream of the openai client to its end. */
export async function collect(stream, onChunk = () => {}) {
  const answer = { text: '', reasoning: '', finish: null, usage: null, chunks: [] };
  for await (const chunk of stream) {
    answer.chunks.push(chunk);
    if (chunk.usage) answer.usage = chunk.usage;
    const choice = chunk.choices[0];
    if (choice) {
      answer.text += choice.delta?.content ?? choice.text ?? '';
      answer.reasoning += choice.delta?.reasoning_content ?? '';
      answer.finish = choice.finish_reason ?? answer.finish;
    }
    onChunk(answer);
  }
  return answer;
}

/** The events of a finished event stream: JSON objects, and "[DONE]" as it is. */
export function parseEvents(text) {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length))
    .map((data) => (data === '[DONE]' ? data : JSON.parse(data)));
}

export function textOf(events) {
  return events.map((event) => event.choices?.[0]?.delta?.content ?? '').join('');
}
