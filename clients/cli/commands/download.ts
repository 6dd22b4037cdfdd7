import type { Command } from 'commander';
import { VALUES } from '../../../contracts/generated/job-defaults.js';
import type { Download, DownloadRequest, ExportRequest } from '../../../contracts/index.js';
import { bytes } from '../../text/numbers.js';
import { bytesView } from '../bytes-bar.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { downloadFile, type FetchFile, pathIn } from '../download-file.js';
import { NamedArgument } from '../names.js';
import { choice } from './arguments.js';

export interface ExportOptions {
  format?: (typeof VALUES.ExportFormat)[number];
  dtype?: (typeof VALUES.ExportDtype)[number];
  weights?: (typeof VALUES.ExportWeights)[number];
  tensorboard?: boolean;
}

interface DownloadOptions extends ExportOptions {
  output?: string;
  viaApi?: boolean;
}

export function addDownloadCommand(program: Command, run: Run): void {
  program
    .command('download')
    .summary('download the model of a job, a checkpoint, or an export of a checkpoint')
    .addArgument(
      new NamedArgument(
        'source',
        'a job: its exported model; a checkpoint, JOB@STEP: its own files, or with --format an export',
      ),
    )
    .option('-o, --output <dir>', 'output folder; default: named after the id')
    .addOption(choice('--format <format>', 'format of an export', VALUES.ExportFormat))
    .addOption(choice('--dtype <dtype>', 'dtype of its weights', VALUES.ExportDtype))
    .addOption(
      choice('--weights <weights>', 'its weights: as trained, or their average', VALUES.ExportWeights),
    )
    .option('--tensorboard', 'the export with an event file of TensorBoard')
    .option('--via-api', 'fetch files through the API instead of directly from S3')
    .action(run(download));
}

async function download(context: Context, id: string, options: DownloadOptions): Promise<void> {
  const { output: dir = id, viaApi } = options;
  context.interruptMessage = 'the download resumes when the same command is repeated';
  const found = await downloadTo(context, dir, { ...(await sourceOf(context, id, options)), viaApi });
  const { checkpoint_id, format, dtype, weights, state_digest, files } = found;
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  context.show(
    { dir, checkpoint_id, format, dtype, weights, state_digest, files: files.map(({ name }) => name) },
    () =>
      `${dir}: ${files.length} ${files.length === 1 ? 'file' : 'files'}, ${bytes(total)}, all checked by SHA-256`,
  );
}

/** Downloads the files of a checkpoint or of an export of it, and checks them. Files that are there already stay. */
export async function downloadTo(
  context: Context,
  dir: string,
  { checkpoint, viaApi, ...kind }: Source & { viaApi?: boolean | undefined },
): Promise<Download> {
  const { client } = context;
  const request: DownloadRequest = { ...kind, via: viaApi ? 'api' : 'auto' };
  let found = await client.checkpoints.downloadUrls(checkpoint, request);
  const { files } = found;
  const show = bytesView(
    context,
    files.reduce((sum, file) => sum + file.bytes, 0),
  );
  const fetchFile: FetchFile = async (name, from, again) => {
    // Expired URLs are requested again.
    if (again) found = await client.checkpoints.downloadUrls(checkpoint, request);
    const file = found.files.find((candidate) => candidate.name === name);
    if (!file) throw new CliError(`${name} no longer exists`, EXIT.failed);
    return client.checkpoints.openFile(file, { from, signal: context.signal });
  };
  try {
    for (const { name, bytes: size, sha256 } of files) {
      show.label(name);
      const target = { path: pathIn(dir, name), name, bytes: size, sha256 };
      await downloadFile({ ...target, fetchFile, onBytes: show.add, signal: context.signal });
    }
  } finally {
    show.close();
  }
  return found;
}

export type Source = { checkpoint: string } & ExportRequest;

/** Files to fetch; a job stands for its exported model. */
export async function sourceOf(context: Context, id: string, options: ExportOptions): Promise<Source> {
  const { format, dtype, weights, tensorboard } = options;
  const kind = {
    ...(format && { format }),
    ...(dtype && { dtype }),
    ...(weights && { weights }),
    ...(tensorboard && { tensorboard }),
  };
  if (id.startsWith('ckpt_')) return { checkpoint: id, ...kind };
  const { latest_checkpoint: last, export: exported, spec, state } = await context.client.jobs.get(id);
  if (exported) {
    const { checkpoint: _, ...written } = spec.export;
    return { checkpoint: exported.checkpoint_id, ...written, ...kind };
  }
  if (last && format) return { checkpoint: last.id, ...kind };
  const instead = last
    ? `its newest checkpoint can be exported: zerofleet export ${last.id}`
    : 'it has no checkpoint yet';
  throw new CliError(`the job is ${state} and has exported nothing; ${instead}`, EXIT.failed);
}
