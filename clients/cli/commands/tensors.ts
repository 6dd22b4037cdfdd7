import { createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { TensorState } from '../../../contracts/index.js';
import { STATE_NAMES } from '../../../contracts/state-records.js';
import { bytes } from '../../text/numbers.js';
import { collect } from '../../typescript/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { table } from '../format.js';
import { NamedArgument } from '../names.js';
import { choice } from './arguments.js';
import { streamOf } from './data.js';

interface TensorOptions {
  state: TensorState;
  output?: string;
}

/** Commands for the tensors of checkpoints. */
export function addTensorCommands(program: Command, run: Run): void {
  program
    .command('tensors')
    .summary('list the parameters of a checkpoint and the states that it has of them')
    .addArgument(new NamedArgument('checkpoint'))
    .action(run(list));
  program
    .command('tensor')
    .summary('download one state of a parameter in fp32, as a safetensors file')
    .addArgument(new NamedArgument('checkpoint'))
    .argument('<name>', 'name of the parameter')
    .addOption(stateOption())
    .option('-o, --output <file>', 'output file; default: NAME.STATE.safetensors')
    .action(run(download));
  program
    .command('set-tensor')
    .summary('make a checkpoint with another value of a tensor, for a paused job to continue from')
    .addArgument(new NamedArgument('checkpoint'))
    .argument('<name>', 'name of the parameter')
    .argument('<file>', 'safetensors file with the tensor in fp32')
    .addOption(stateOption())
    .action(run(change));
}

const EDIT_POLL_MS = 500;

const stateOption = () => choice('--state <state>', 'state of the parameter', STATE_NAMES).default('master');

async function list(context: Context, id: string): Promise<void> {
  const found = await collect(context.client.checkpoints.tensors(id));
  const rows = found.map(({ name, shape, states }) => [name, shape.join(' × '), states.join(', ')]);
  context.show(found, () => table(['TENSOR', 'SHAPE', 'STATES'], rows, 'no tensors', context.width));
}

async function change(
  context: Context,
  id: string,
  name: string,
  file: string,
  { state }: TensorOptions,
): Promise<void> {
  const { client, signal } = context;
  let edit = await client.checkpoints.setTensor(id, name, streamOf(file), { state, signal });
  while (edit.state === 'queued' || edit.state === 'running') {
    await sleep(EDIT_POLL_MS, undefined, { signal });
    edit = await client.checkpoints.edit(id, edit.id);
  }
  if (edit.state === 'failed') throw new CliError(edit.error?.message ?? 'the change failed', EXIT.failed);
  context.show(edit, () => `${edit.checkpoint_id}  made from ${id}`);
}

async function download(
  context: Context,
  id: string,
  name: string,
  { state, output = `${name}.${state}.safetensors` }: TensorOptions,
): Promise<void> {
  const { client, signal } = context;
  const content = await client.checkpoints.openTensor(id, name, { state, signal });
  // The file gets its name when it is complete.
  const part = `${output}.part`;
  const file = createWriteStream(part);
  await pipeline(Readable.fromWeb(content as ReadableStream<Uint8Array>), file, { signal });
  await rename(part, output);
  context.show({ file: output, bytes: file.bytesWritten }, () => `${output}  ${bytes(file.bytesWritten)}`);
}
