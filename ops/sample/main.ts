/** `npm run sample -- DIRECTORY`: prints text from an exported model. */
import { parseArgs } from 'node:util';
import { ZerofleetError } from '../../contracts/index.js';
import { NativeError } from '../../native/js/index.js';
import { ModelFolderError } from './model-folder.js';
import { type SampleTextOptions, sampleText } from './sample-text.js';

const USAGE =
  'usage: npm run sample -- DIRECTORY [--prompt TEXT] [--tokens 300] [--temperature 0.7] [--top-k 0] [--top-p 1] [--seed 1]';

function parse(args: readonly string[]) {
  const text = (value: string) => ({ type: 'string', default: value }) as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        prompt: text('#'),
        tokens: text('300'),
        temperature: text('0.7'),
        'top-k': text('0'),
        'top-p': text('1'),
        seed: text('1'),
      },
    });
  } catch {
    return null;
  }
}

/** Parses the command line; null if it is invalid. */
function readRequest(args: readonly string[]): { dir: string; options: SampleTextOptions } | null {
  const parsed = parse(args);
  if (parsed === null) return null;
  const { values, positionals } = parsed;
  const [dir] = positionals;
  const [maxTokens = 0, temperature = 0, topK = 0, topP = 0, seed = 0] = [
    values.tokens,
    values.temperature,
    values['top-k'],
    values['top-p'],
    values.seed,
  ].map(Number);
  const valid = [maxTokens, temperature, topK, seed].every((value) => value >= 0) && topP > 0 && topP <= 1;
  if (dir === undefined || positionals.length > 1 || !valid) return null;
  return {
    dir,
    options: { prompt: values.prompt, max_tokens: maxTokens, temperature, top_k: topK, top_p: topP, seed },
  };
}

/** Runs the command; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const request = readRequest(args);
  if (!request) {
    process.stderr.write(`${USAGE}\n`);
    process.exitCode = 2;
    return;
  }
  try {
    process.stdout.write(`${await sampleText(request.dir, request.options)}\n`);
  } catch (error) {
    const isFileError = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const known = [ModelFolderError, NativeError, ZerofleetError].some((type) => error instanceof type);
    if (!known && !isFileError) throw error;
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
