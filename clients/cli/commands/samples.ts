import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { VALUES } from '../../../contracts/generated/job-defaults.js';
import type { ChatMessage, Sample, SampleRequest } from '../../../contracts/index.js';
import type { Context, Run } from '../context.js';
import { NamedArgument } from '../names.js';
import { choice, count, number, several } from './arguments.js';

/** Commands that generate text. */
export function addSampleCommands(program: Command, run: Run): void {
  const sampling = program
    .command('sample')
    .summary('continue a text with a checkpoint, the result of a job, or an uploaded model')
    .addArgument(new NamedArgument('weights'))
    .argument('<prompt>', 'the text that the model continues')
    .action(run(sample));
  const chatting = program
    .command('chat')
    .summary('chat with a checkpoint, the result of a job, or an uploaded model')
    .addArgument(new NamedArgument('weights'))
    .argument('[message]', 'the message; without it, one line of standard input per turn')
    .option('--system <text>', 'a system message before the others')
    .action(run(chat));
  for (const command of [sampling, chatting])
    command
      .option('-n, --max-tokens <count>', 'the maximum number of tokens of an answer', count)
      .option('-t, --temperature <number>', '0 always takes the most likely token', number)
      .option('--top-k <count>', 'sample from this many most likely tokens', count)
      .option('--top-p <share>', 'sample from the most likely tokens with this total probability', number)
      .option(
        '--presence-penalty <number>',
        'subtracted from the logits of tokens that the answer has',
        number,
      )
      .option(
        '--frequency-penalty <number>',
        'subtracted once for each time that the answer has the token',
        number,
      )
      .option('--stop <text>', 'a text that ends the answer; may be repeated', several)
      .option('--seed <count>', 'the same seed gives the same text', count)
      .addOption(
        choice('--weights <weights>', 'the weights as trained, or their average', VALUES.ExportWeights),
      );
}

interface SampleOptions {
  maxTokens?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  stop?: string[];
  seed?: number;
  weights?: (typeof VALUES.ExportWeights)[number];
}

type Drawing = Omit<SampleRequest, 'prompt' | 'messages' | 'stream'>;

const drawingOf = ({
  maxTokens,
  topK,
  topP,
  presencePenalty,
  frequencyPenalty,
  temperature,
  stop,
  seed,
  weights,
}: SampleOptions): Drawing => ({
  max_tokens: maxTokens,
  top_k: topK,
  top_p: topP,
  presence_penalty: presencePenalty,
  frequency_penalty: frequencyPenalty,
  temperature,
  stop,
  seed,
  weights,
});

async function sample(context: Context, id: string, prompt: string, options: SampleOptions): Promise<void> {
  await answer(context, id, { prompt, ...drawingOf(options) }, prompt);
}

/** Answers one message, or one per input line. */
async function chat(
  context: Context,
  id: string,
  question: string | undefined,
  { system, ...options }: SampleOptions & { system?: string },
): Promise<void> {
  const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }];
  for await (const content of question === undefined ? linesOf(context) : [question]) {
    messages.push({ role: 'user', content });
    const { choices } = await answer(context, id, { messages, ...drawingOf(options) }, '');
    messages.push({ role: 'assistant', content: choices[0]?.text ?? '' });
  }
}

/** Shows a sample as it grows, behind `before`; with --json when it is there. */
async function answer(
  context: Context,
  id: string,
  request: Omit<SampleRequest, 'stream'>,
  before: string,
): Promise<Sample> {
  const { client, signal, json } = context;
  if (json) {
    const whole = await client.samples.create(id, request, { signal });
    context.show(whole, () => '');
    return whole;
  }
  const deltas = client.samples.stream(id, request, { signal });
  // An error before the first text is printed alone.
  let result = await deltas.next();
  context.write(before);
  for (; !result.done; result = await deltas.next()) context.write(result.value.text);
  context.write('\n');
  return result.value;
}

/** User messages, one per turn; a terminal shows a prompt for each. */
async function* linesOf({ environment, interactive }: Context): AsyncGenerator<string> {
  const ask = () => interactive && environment.stdout.write('> ');
  ask();
  for await (const line of createInterface({ input: Readable.from(environment.stdin) })) {
    if (line.trim() !== '') yield line;
    ask();
  }
}
