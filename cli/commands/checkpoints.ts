import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { collect } from '../../client/index.js';
import type {
  ChatMessage,
  CheckpointExport,
  ExportFile,
  ExportRequest,
  SampleRequest,
} from '../../contracts/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { age, bytes, losses, table } from '../format.js';
import { NamedArgument } from '../names.js';
import { choice, count, number } from './arguments.js';

const EXPORT_POLL_MS = 500;
/** A large model for DeepSpeed consists of thousands of files; `--json` lists them all. */
const SHOWN_FILES = 20;
export const FORMATS = ['safetensors', 'peft', 'deepspeed_universal'] as const;
export const DTYPES = ['bf16', 'fp16', 'fp32'] as const;
export const WEIGHTS = ['trained', 'ema'] as const;

/** Commands for checkpoints. */
export function addCheckpointCommands(program: Command, run: Run): void {
  program
    .command('checkpoints')
    .summary("list a job's checkpoints, or those of all jobs, newest first")
    .addArgument(new NamedArgument('job').argOptional())
    .action(run(listCheckpoints));
  program
    .command('verify')
    .summary('read every byte of a checkpoint and check it')
    .addArgument(new NamedArgument('checkpoint'))
    .action(run(verify));
  program
    .command('pin')
    .summary('keep a checkpoint from the retention rule')
    .addArgument(new NamedArgument('checkpoint'))
    .option('--off', 'unpin it')
    .action(
      run(async (context, id: string, { off }: { off?: boolean }) => {
        const checkpoint = await context.client.checkpoints.pin(id, off !== true);
        context.show(checkpoint, () => `${id}  ${checkpoint.pinned ? 'pinned' : 'not pinned'}`);
      }),
    );
  program
    .command('sample')
    .summary('generate text from a checkpoint, or chat with it')
    .addArgument(new NamedArgument('checkpoint'))
    .argument(
      '[prompt]',
      'the prompt; with --chat the message: without it, one line of standard input per turn',
    )
    .option('--chat', 'chat, using the chat template of its job')
    .option('-n, --max-tokens <count>', 'the maximum number of tokens', count)
    .option('-t, --temperature <number>', '0 always takes the most likely token', number)
    .option('--top-k <count>', 'sample from this many most likely tokens', count)
    .option('--top-p <share>', 'sample from the most likely tokens with this total probability', number)
    .option('--seed <count>', 'the same seed gives the same text', count)
    .addOption(choice('--weights <weights>', 'the weights as trained, or their average', WEIGHTS))
    .action(run(sample));
  program
    .command('export')
    .summary('export the weights of a checkpoint in another format, and wait for it')
    .addArgument(new NamedArgument('checkpoint'))
    .addOption(choice('--format <format>', 'file format', FORMATS).default('safetensors'))
    .addOption(choice('--dtype <dtype>', 'dtype of the weights', DTYPES))
    .addOption(choice('--weights <weights>', 'the weights as trained, or their average', WEIGHTS))
    .action(run(exportCheckpoint));
}

async function listCheckpoints(context: Context, job?: string): Promise<void> {
  const { jobs, checkpoints } = context.client;
  const found = await collect(job === undefined ? checkpoints.list() : jobs.checkpoints(job));
  const rows = found.map((checkpoint) => [
    checkpoint.id,
    ...(job === undefined ? [checkpoint.job_id] : []),
    String(checkpoint.step),
    String(checkpoint.world_size),
    bytes(checkpoint.bytes),
    checkpoint.state_digest,
    losses(checkpoint.eval_losses),
    checkpoint.pinned ? 'yes' : '',
    age(checkpoint.committed_at),
  ]);
  const head = ['STEP', 'RANKS', 'SIZE', 'DIGEST', 'EVAL LOSSES', 'PINNED', 'COMMITTED'];
  const columns = ['CHECKPOINT', ...(job === undefined ? ['JOB'] : []), ...head];
  context.show(found, () => table(columns, rows, 'no checkpoints'));
}

async function verify(context: Context, id: string): Promise<void> {
  const verdict = await context.client.checkpoints.verify(id);
  context.show(verdict, () =>
    verdict.valid
      ? `valid, ${bytes(verdict.bytes)} read`
      : verdict.problems.map(({ object, code, message }) => `${object}  ${code}: ${message}`).join('\n'),
  );
  if (!verdict.valid) throw new CliError(`${id} is damaged`, EXIT.failed);
}

interface SampleOptions {
  chat?: boolean;
  maxTokens?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  seed?: number;
  weights?: (typeof WEIGHTS)[number];
}

async function sample(
  context: Context,
  id: string,
  prompt: string | undefined,
  options: SampleOptions,
): Promise<void> {
  const { chat, maxTokens: max_tokens, temperature, topK: top_k, topP: top_p, seed, weights } = options;
  const drawing = { max_tokens, temperature, top_k, top_p, seed, weights };
  if (chat) return converse(context, id, prompt, drawing);
  if (prompt === undefined) throw new CliError('give a prompt, or --chat', EXIT.usage);
  const written = await context.client.checkpoints.sample(id, { prompt, ...drawing });
  context.show(written, () => written.prompt + written.completion);
}

type Drawing = Omit<SampleRequest, 'prompt' | 'messages'>;

/** Answers one message, or one per input line. */
async function converse(
  context: Context,
  id: string,
  question: string | undefined,
  drawing: Drawing,
): Promise<void> {
  const messages: ChatMessage[] = [];
  for await (const content of question === undefined ? linesOf(context) : [question]) {
    messages.push({ role: 'user', content });
    const answer = await context.client.checkpoints.sample(id, { messages, ...drawing });
    context.show(answer, () => answer.completion);
    messages.push({ role: 'assistant', content: answer.completion });
  }
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

async function exportCheckpoint(context: Context, id: string, request: ExportRequest): Promise<void> {
  const { client, signal } = context;
  let done = await client.checkpoints.export(id, request);
  const isSame = (other: CheckpointExport) => other.prefix === done.prefix;
  while (done.state === 'queued' || done.state === 'running') {
    await sleep(EXPORT_POLL_MS, undefined, { signal });
    done = (await client.checkpoints.exports(id)).find(isSame) ?? done;
  }
  if (done.state === 'failed') throw new CliError(done.error?.message ?? 'the export failed', EXIT.failed);
  context.show(done, () => `${done.prefix}\n${fileTable(done.files)}`);
  const { format, dtype, weights } = done;
  const kind = `--format ${format} --dtype ${dtype}${weights === 'ema' ? ' --weights ema' : ''}`;
  context.note(`fetch it with: zerofleet download ${id} ${kind}`);
}

function fileTable(files: readonly ExportFile[]): string {
  const rows = files.slice(0, SHOWN_FILES).map((file) => [file.name, bytes(file.bytes)]);
  const shown = table(['FILE', 'SIZE'], rows, 'no files');
  if (files.length <= SHOWN_FILES) return shown;
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  return `${shown}\n${files.length - SHOWN_FILES} more files, ${bytes(total)} in all`;
}
