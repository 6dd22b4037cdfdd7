import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { VALUES } from '../../../contracts/generated/job-defaults.js';
import { type HubUri, parseHubUri } from '../../../contracts/index.js';
import { trainingDatasetsOf } from '../../../job-document/index.js';
import { CliError, type Context, EXIT, type Run } from '../context.js';
import { modelCard } from '../model-card.js';
import { NamedArgument } from '../names.js';
import { choice } from './arguments.js';
import { downloadTo, type ExportOptions, sourceOf } from './download.js';

const CARD = 'README.md';

interface PushOptions extends ExportOptions {
  output?: string;
  private?: boolean;
  message?: string;
}

export function addPushCommand(program: Command, run: Run): void {
  program
    .command('push')
    .summary('upload the model of a job, or an export of a checkpoint, to the Hugging Face Hub')
    .addArgument(new NamedArgument('source', 'a job: its exported model; a checkpoint, JOB@STEP: an export'))
    .argument('<uri>', 'hf://owner/name, or with @branch; a missing repository is created')
    .option('--private', 'create a private repository')
    .option('-m, --message <text>', 'title of the commit')
    .option('-o, --output <dir>', 'keep the downloaded files here; default: a temporary folder')
    .addOption(choice('--format <format>', 'format of an export', VALUES.ExportFormat))
    .addOption(choice('--dtype <dtype>', 'dtype of its weights', VALUES.ExportDtype))
    .addOption(
      choice('--weights <weights>', 'its weights: as trained, or their average', VALUES.ExportWeights),
    )
    .action(run(push));
}

async function push(context: Context, id: string, uri: string, options: PushOptions): Promise<void> {
  const { HF_TOKEN: accessToken, HF_ENDPOINT: hubUrl = 'https://huggingface.co' } = context.environment.env;
  const target = readTarget(uri);
  if (!accessToken)
    throw new CliError('set HF_TOKEN to a token of the Hub that may write to the repository', EXIT.usage);
  const asked = await sourceOf(context, id, options);
  const facts = await factsOf(context, asked.checkpoint);
  const { format, dtype, weights } = facts.job.spec.export;
  const source = { format, dtype, weights, ...asked };
  const dir = options.output ?? (await mkdtemp(join(tmpdir(), 'zerofleet-push-')));
  context.interruptMessage = 'nothing was pushed; repeat the command';
  try {
    const exported = await downloadTo(context, dir, source);
    const card = modelCard({ repository: target.repository, exported, ...facts });
    const names = exported.files.map(({ name }) => name).filter((name) => name !== CARD);
    const files = [
      ...names.map((path) => ({ path, content: pathToFileURL(join(dir, path)) })),
      { path: CARD, content: new Blob([card]) },
    ];
    const title = options.message ?? `Add step ${facts.checkpoint.step} of ${facts.job.id} by zerofleet`;
    const commit = await upload({
      target,
      accessToken,
      hubUrl,
      title,
      files,
      isPrivate: options.private,
      context,
    });
    const shown = {
      uri,
      ...commit,
      checkpoint_id: exported.checkpoint_id,
      files: files.map(({ path }) => path),
    };
    context.show(shown, () => `${commit.url}: ${files.length} files`);
  } finally {
    if (options.output === undefined) await rm(dir, { recursive: true, force: true });
  }
}

function readTarget(uri: string): HubUri {
  try {
    const target = parseHubUri(uri);
    if (target.kind === 'model' && target.path === '') return target;
  } catch {
    // The same message for every form.
  }
  throw new CliError(`'${uri}' is not of the form hf://owner/name or hf://owner/name@branch`, EXIT.usage);
}

/** Returns the facts of a checkpoint for its model card, without records that were deleted. */
async function factsOf({ client }: Context, checkpointId: string) {
  const checkpoint = await client.checkpoints.get(checkpointId);
  const job = await client.jobs.get(checkpoint.job_id);
  const { init_from } = job.spec.model;
  const named = init_from !== null && 'model' in init_from ? init_from.model : null;
  const [base, ...datasets] = await Promise.all([
    named === null ? null : client.models.get(named).catch(() => null),
    ...trainingDatasetsOf(job.spec.data).map(({ dataset }) => client.datasets.get(dataset).catch(() => null)),
  ]);
  return { checkpoint, job, base, datasets: datasets.filter((dataset) => dataset !== null) };
}

interface Upload {
  target: HubUri;
  accessToken: string;
  hubUrl: string;
  title: string;
  files: { path: string; content: URL | Blob }[];
  isPrivate: boolean | undefined;
  context: Context;
}

/** Creates the repository if it does not exist, and makes one commit. */
async function upload({ target, accessToken, hubUrl, title, files, isPrivate, context }: Upload) {
  // The library is large; other commands do not load it.
  const hub = await import('@huggingface/hub');
  const repo = { type: 'model', name: target.repository } as const;
  const account = { repo, accessToken, hubUrl: hubUrl.replace(/\/$/, '') };
  try {
    if (!(await hub.repoExists(account)))
      await hub.createRepo({ ...account, ...(isPrivate && { visibility: 'private' }) });
    context.note(`uploading to ${target.repository}`);
    const { signal } = context;
    const made = await hub.uploadFiles({
      ...account,
      files,
      branch: target.revision,
      commitTitle: title,
      abortSignal: signal,
    });
    return {
      commit: made?.commit.oid ?? null,
      url: made?.commit.url ?? `${account.hubUrl}/${target.repository}`,
    };
  } catch (error) {
    throw error instanceof hub.HubApiError ? new CliError(refusal(error, target), EXIT.failed) : error;
  }
}

function refusal(
  { statusCode, message }: { statusCode: number; message: string },
  { repository }: HubUri,
): string {
  if (statusCode === 401 || statusCode === 403)
    return `the Hub refuses ${repository}: HF_TOKEN must be a token that may write to it`;
  return `the Hub refuses the upload to ${repository} with status ${statusCode}: ${message}`;
}
