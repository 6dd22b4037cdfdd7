/**
 * Real S3 server for tests: Ceph's radosgw with one monitor and one in-memory storage daemon. All of it runs
 * as the current user in one temporary directory, on loopback, without authentication inside the cluster.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { freePort } from './free-port.js';
import { ensurePrograms } from './programs.js';
import { untilDone } from './waiting.js';
import '../aws-sdk.js';

const run = promisify(execFile);
const PROGRAMS = ['ceph', 'ceph-mon', 'ceph-osd', 'monmaptool', 'radosgw', 'radosgw-admin'];
const PACKAGES = ['ceph-common', 'ceph-mon', 'ceph-osd', 'radosgw'];
const COMMAND_TIMEOUT_MS = 60_000;
const START_ATTEMPTS = 3;
/** Of the end of a daemon's messages. */
const MESSAGE_CHARACTERS = 1000;
/** Capacity of the storage daemon; writes to a full one wait for ever. */
const MEMORY_BYTES = 1024 ** 3;

export interface TestS3 {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  readonly host: string;
  readonly port: number;
  readonly region: string;
  readonly credentials: { accessKeyId: string; secretAccessKey: string };
  createBucket(name: string): Promise<void>;
  /**
   * Creates a role that the user of `credentials` may assume, at the same endpoint. @param policy IAM policy.
   * @returns its ARN
   */
  createRole(name: string, policy: object): Promise<string>;
  /** Frees the memory of deleted and replaced objects, which the server itself does only after hours. */
  collectGarbage(): Promise<void>;
  /** Ends all its processes and removes its files. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Returns null when radosgw can be started here (installing it first as root), else the reason for a test's
 * `skip`.
 */
export function whyNoRadosgw(): Promise<string | null> {
  return ensurePrograms(PROGRAMS, PACKAGES);
}

/**
 * Starts a fresh server; takes about ten seconds. Its start is retried after transient failures (a port taken
 * meanwhile, a monitor that is not ready), which are not the subject of the tests.
 * @param memoryBytes capacity
 */
export async function startRadosgw(memoryBytes = MEMORY_BYTES): Promise<TestS3> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startCluster(memoryBytes);
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error;
      console.error(`attempt ${attempt}: ${String(error)}`);
    }
  }
}

async function startCluster(memoryBytes: number): Promise<TestS3> {
  const dir = await mkdtemp(join(tmpdir(), 'zf-ceph-'));
  const cluster = new Cluster(dir, memoryBytes, await freePort(), await freePort());
  try {
    return await cluster.start();
  } catch (error) {
    const logs = await cluster.logs();
    await cluster.stop();
    throw new Error(`radosgw did not start: ${String(error)}\n${logs}`, { cause: error });
  }
}

class Cluster {
  private readonly children: ChildProcess[] = [];
  /** Aborted when a daemon ends, with its last messages as the reason. */
  private readonly ended = new AbortController();
  private readonly fsid = randomUUID();
  private readonly config: string;
  private readonly onExit = () => this.killAll();

  constructor(
    private readonly dir: string,
    private readonly memoryBytes: number,
    private readonly monPort: number,
    private readonly rgwPort: number,
  ) {
    this.config = join(dir, 'ceph.conf');
  }

  async start(): Promise<TestS3> {
    // Otherwise a test killed by its timeout would leave three daemons behind.
    process.once('exit', this.onExit);
    for (const part of ['mon', 'osd', 'rgw']) await mkdir(join(this.dir, part));
    await writeFile(this.config, this.configText());
    await this.startMonitor();
    await this.startStorage();
    return this.startGateway();
  }

  async stop(): Promise<void> {
    process.off('exit', this.onExit);
    const running = this.children.filter((child) => child.exitCode === null && child.signalCode === null);
    const ended = running.map((child) => once(child, 'exit'));
    this.killAll();
    await Promise.all(ended);
    await rm(this.dir, { recursive: true, force: true });
  }

  async logs(): Promise<string> {
    const names = ['mon.a', 'osd.0', 'client.rgw'];
    const texts = names.map((name) => readFile(join(this.dir, `${name}.log`), 'utf8').catch(() => ''));
    return (await Promise.all(texts)).map((text) => text.slice(-MESSAGE_CHARACTERS)).join('\n');
  }

  private async startMonitor(): Promise<void> {
    const map = join(this.dir, 'monmap');
    const address = `[v1:127.0.0.1:${this.monPort}]`;
    await run('monmaptool', ['--create', '--fsid', this.fsid, '--addv', 'a', address, map]);
    await this.command('ceph-mon', ['-i', 'a', '--mkfs', '--monmap', map]);
    this.daemon('ceph-mon', ['-i', 'a', '-f']);
  }

  private async startStorage(): Promise<void> {
    const id = randomUUID();
    // A new monitor refuses commands until it has read its own map. These may be repeated.
    await this.repeated('ceph', ['osd', 'new', id]);
    await this.repeated('ceph', ['osd', 'crush', 'add', '0', '1', 'root=default', 'host=localhost']);
    await this.command('ceph-osd', ['-i', '0', '--mkfs', '--osd-uuid', id]);
    this.daemon('ceph-osd', ['-i', '0', '-f']);
  }

  private async startGateway(): Promise<TestS3> {
    const host = '127.0.0.1';
    const endpoint = `http://${host}:${this.rgwPort}`;
    const credentials = { accessKeyId: `test${randomUUID()}`, secretAccessKey: randomUUID() };
    const region = 'us-east-1';
    // Creating the user also creates the pools, which waits until the storage daemon is up.
    const user = ['--uid=test', '--display-name=test', `--access-key=${credentials.accessKeyId}`];
    await this.command('radosgw-admin', [
      ...['-n', 'client.rgw', 'user', 'create', ...user],
      `--secret-key=${credentials.secretAccessKey}`,
    ]);
    this.daemon('radosgw', ['-n', 'client.rgw', '-f']);
    await untilAnswering(endpoint, this.ended.signal);
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
    return {
      endpoint,
      host,
      port: this.rgwPort,
      region,
      credentials,
      async createBucket(name) {
        await client.send(new CreateBucketCommand({ Bucket: name }));
      },
      createRole: (name, policy) => this.createRole(name, policy),
      collectGarbage: () =>
        this.command('radosgw-admin', ['-n', 'client.rgw', 'gc', 'process', '--include-all']),
      stop: async () => {
        client.destroy();
        await this.stop();
      },
    };
  }

  private async createRole(name: string, policy: object): Promise<string> {
    const trust = allow({ Principal: { AWS: ['arn:aws:iam:::user/test'] }, Action: ['sts:AssumeRole'] });
    const role = [`--role-name=${name}`];
    await this.command('radosgw-admin', [
      ...['-n', 'client.rgw', 'role', 'create', ...role],
      `--assume-role-policy-doc=${trust}`,
    ]);
    await this.command('radosgw-admin', [
      ...['-n', 'client.rgw', 'role-policy', 'put', ...role, '--policy-name=all'],
      `--policy-doc=${JSON.stringify(policy)}`,
    ]);
    return `arn:aws:iam:::role/${name}`;
  }

  private async command(program: string, args: string[]): Promise<void> {
    const { signal } = this.ended;
    const options = { timeout: COMMAND_TIMEOUT_MS, cwd: this.dir, signal };
    await run(program, ['-c', this.config, ...args], options).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    });
  }

  private repeated(program: string, args: string[]): Promise<void> {
    return untilDone(() => this.command(program, args), this.ended.signal);
  }

  private daemon(program: string, args: string[]): void {
    const child = spawn(program, ['-c', this.config, ...args], {
      cwd: this.dir,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let messages = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      messages = (messages + text).slice(-MESSAGE_CHARACTERS);
    });
    child.once('close', (code, signal) =>
      this.ended.abort(new Error(`${program} ended with ${code ?? signal}: ${messages}`)),
    );
    this.children.push(child);
  }

  private killAll(): void {
    for (const child of this.children) child.kill('SIGKILL');
  }

  private configText(): string {
    const { dir, memoryBytes, monPort, rgwPort, fsid } = this;
    return `[global]
fsid = ${fsid}
mon host = v1:127.0.0.1:${monPort}
auth cluster required = none
auth service required = none
auth client required = none
ms bind msgr2 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = ${dir}
admin socket =
log file = ${dir}/$name.log
mon cluster log file = ${dir}/cluster.log
# One copy of everything: there is one storage daemon.
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
# Otherwise the monitor ends at once where 5 % of the disk or less are free.
mon data avail crit = 0
osd crush chooseleaf type = 0
# The daemon would do this by itself, but asks before it knows the cluster's id, and is refused now and then.
osd class update on start = false
osd crush update on start = false
[mon.a]
mon data = ${dir}/mon
[osd.0]
osd data = ${dir}/osd
osd objectstore = memstore
memstore device bytes = ${memoryBytes}
[client.rgw]
rgw data = ${dir}/rgw
rgw sts key = ${randomUUID().slice(0, 16)}
rgw s3 auth use sts = true
rgw frontends = beast endpoint=127.0.0.1:${rgwPort}
`;
  }
}

function allow(statement: object): string {
  return JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', ...statement }] });
}

async function untilAnswering(endpoint: string, ended: AbortSignal): Promise<void> {
  await untilDone(async () => {
    await (await fetch(endpoint, { signal: AbortSignal.timeout(2_000) })).arrayBuffer();
  }, ended);
}
