import { createReadStream, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { formatOfName } from '../../../contracts/dataset-names.js';
import type { Dataset, Model } from '../../../contracts/index.js';
import { bytes } from '../../text/numbers.js';
import { collect } from '../../typescript/index.js';
import { bytesView } from '../bytes-bar.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { downloadFile } from '../download-file.js';
import { age, type Columns, documentsOf } from '../format.js';
import { archiveOf } from '../model-archive.js';
import { NamedArgument, NamedOption } from '../names.js';
import { unreadable } from '../spec-file.js';
import { choice } from './arguments.js';
import { IN_PARTS_BYTES, inPartsFrom, uploadInParts } from './upload-parts.js';

const FORMATS = ['text', 'jsonl', 'tokens'] as const;

const baseOption = () =>
  new NamedOption('model', '--base <model>', 'for an adapter: the uploaded model that it was trained over');

/** Commands for datasets and models. */
export function addDataCommands(program: Command, run: Run): void {
  const datasets = program.command('datasets').summary('list, upload and delete datasets');
  datasets.command('list', { isDefault: true }).summary('list them, newest first').action(run(listDatasets));
  datasets
    .command('upload')
    .summary('upload a file')
    .argument('<file>', 'its path')
    .option('--name <name>', 'a display name; default: the file name')
    .addOption(choice('--format <format>', 'default: by the file extension', FORMATS))
    .option('--in-parts', `upload in resumable parts; default from ${inPartsFrom} on`)
    .option('--via-api', 'send parts through the API instead of directly to S3')
    .option('--resume <upload>', 'resume an interrupted upload of this file')
    .action(run(showUploaded));
  datasets
    .command('register')
    .summary('copy an object of a bucket that the operator allows, or a file of the Hugging Face Hub')
    .argument('<uri>', 's3://bucket/key or hf://datasets/owner/name@revision/path')
    .option('--name <name>', 'a display name; default: the last part of the key')
    .addOption(choice('--format <format>', 'default: by the extension of the key', FORMATS))
    .action(run(registerDataset));
  datasets
    .command('download')
    .summary('download the uploaded content; resumes an interrupted download')
    .addArgument(new NamedArgument('dataset'))
    .option('-o, --output <file>', 'output file; default: named after the id')
    .action(run(downloadDataset));
  datasets
    .command('delete')
    .summary('delete an unused dataset')
    .addArgument(new NamedArgument('dataset'))
    .action(run((context, id: string) => context.client.datasets.delete(id)));

  const models = program.command('models').summary('list, upload and delete initial models');
  models.command('list', { isDefault: true }).summary('list them, newest first').action(run(listModels));
  models
    .command('upload')
    .summary('upload the folder of a Hugging Face model or of a PEFT adapter, or a tar archive of it')
    .argument('<path>', 'path of the folder or archive')
    .option('--name <name>', 'a display name; default: the name of the folder or file')
    .addOption(baseOption())
    .action(run(uploadModel));
  models
    .command('register')
    .summary(
      'copy the folder of a Hugging Face model or of a PEFT adapter from a bucket that the operator allows, or from the Hub',
    )
    .argument('<uri>', 's3://bucket/folder or hf://owner/name@revision')
    .option('--name <name>', 'a display name; default: the name of the folder')
    .addOption(baseOption())
    .action(run(registerModel));
  models
    .command('delete')
    .summary('delete an unused model')
    .addArgument(new NamedArgument('model'))
    .action(run((context, id: string) => context.client.models.delete(id)));
}

async function downloadDataset(context: Context, id: string, options: { output?: string }): Promise<void> {
  const { datasets } = context.client;
  const path = resolve(options.output ?? id);
  const { bytes: size, digest } = await datasets.get(id);
  const show = bytesView(context, size);
  show.label(id);
  context.interruptMessage = 'the download resumes when the same command is repeated';
  try {
    await downloadFile({
      path,
      name: id,
      bytes: size,
      sha256: digest.replace('sha256:', ''),
      fetchFile: (_name, from) => datasets.content(id, { from, signal: context.signal }),
      onBytes: show.add,
      signal: context.signal,
    });
  } finally {
    show.close();
  }
  context.show({ id, path, bytes: size, digest }, () => `${path}: ${bytes(size)}, checked by SHA-256`);
}

async function listDatasets(context: Context): Promise<void> {
  const columns: Columns<Dataset> = {
    DATASET: ({ id }) => id,
    NAME: ({ name }) => name,
    FORMAT: ({ format }) => format,
    SIZE: (dataset) => bytes(dataset.bytes),
    DOCUMENTS: documentsOf,
    CREATED: ({ created_at }) => age(created_at),
  };
  context.list(await collect(context.client.datasets.list()), columns, 'no datasets');
}

async function listModels(context: Context): Promise<void> {
  const columns: Columns<Model> = {
    MODEL: ({ id }) => id,
    NAME: ({ name }) => name,
    TYPE: ({ model_type }) => model_type ?? 'tokenizer',
    SIZE: (model) => bytes(model.bytes),
    CREATED: ({ created_at }) => age(created_at),
  };
  context.list(await collect(context.client.models.list()), columns, 'no models');
}

async function statOf(file: string): Promise<Stats> {
  return stat(file).catch((error: NodeJS.ErrnoException) => {
    throw new CliError(unreadable(file, error), EXIT.usage);
  });
}

/** Size of a file in bytes. */
async function sizeOf(file: string): Promise<number> {
  const found = await statOf(file);
  if (!found.isFile()) throw new CliError(`${file} is not a file`, EXIT.usage);
  return found.size;
}

export const streamOf = (file: string) =>
  Readable.toWeb(createReadStream(file)) as ReadableStream<Uint8Array>;

interface UploadOptions {
  name?: string;
  format?: Dataset['format'];
  inParts?: boolean;
  viaApi?: boolean;
  resume?: string;
}

async function showUploaded(context: Context, file: string, options: UploadOptions): Promise<void> {
  const dataset = await uploadDataset(context, file, options);
  context.show(dataset, () => dataset.id);
  context.note(
    `${dataset.format}, ${bytes(dataset.bytes)}, ${dataset.digest}, documents: ${documentsOf(dataset)}`,
  );
}

/** Uploads a file, a large one in parts. */
export async function uploadDataset(
  context: Context,
  file: string,
  options: UploadOptions,
): Promise<Dataset> {
  const { name = basename(file), format = formatOfName(file), inParts, viaApi, resume } = options;
  const size = await sizeOf(file);
  return inParts || resume !== undefined || size >= IN_PARTS_BYTES
    ? uploadInParts(context, { file, size, name, format, via: viaApi ? 'api' : 'auto' }, resume)
    : context.client.datasets.create(name, streamOf(file), format);
}

async function registerDataset(
  context: Context,
  uri: string,
  options: { name?: string; format?: Dataset['format'] },
): Promise<void> {
  const { name = uri.slice(uri.lastIndexOf('/') + 1), format = formatOfName(uri) } = options;
  const dataset = await context.client.datasets.register(name, uri, format);
  context.show(dataset, () => dataset.id);
  context.note(
    `${dataset.format}, ${bytes(dataset.bytes)}, ${dataset.digest}, documents: ${documentsOf(dataset)}`,
  );
}

interface ModelOptions {
  name?: string;
  base?: string;
}

async function uploadModel(
  context: Context,
  path: string,
  { name = basename(resolve(path)), ...options }: ModelOptions,
): Promise<void> {
  const isFolder = (await statOf(path)).isDirectory();
  if (!isFolder) await sizeOf(path);
  const archive = isFolder ? await archiveOf(path) : streamOf(path);
  const model = await context.client.models.create(name, archive, options);
  context.show(model, () => model.id);
  context.warn(model.warnings);
  const ignored = model.ignored_files.length === 0 ? '' : `; ignored: ${model.ignored_files.join(', ')}`;
  context.note(`${model.model_type ?? 'tokenizer'}, ${bytes(model.bytes)}, ${model.digest}${ignored}`);
}

async function registerModel(
  context: Context,
  uri: string,
  { name = basename(uri), ...options }: ModelOptions,
): Promise<void> {
  const model = await context.client.models.register(name, uri, options);
  context.warn(model.warnings);
  context.show(model, () => model.id);
  context.note(`${bytes(model.bytes)}, ${model.digest}`);
}
