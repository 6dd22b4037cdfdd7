/**
 * Real control plane of Kubernetes for tests: etcd, API server, controllers and scheduler, as the current user in one
 * temporary directory, on loopback. There is no container runtime: `Kubelets` stands in for the nodes.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../process/root.js';
import { freePort } from '../free-port.js';
import { Killer } from '../killer.js';
import { untilDone } from '../waiting.js';
import { clientArguments, controllerArguments, etcdArguments, serverArguments } from './arguments.js';
import { AdminClient } from './client.js';
import { Kubelets, type TestImage } from './kubelet.js';

const run = promisify(execFile);

/** Service account of the manifests. */
export const AUTOSCALER = 'zerofleet-autoscaler';
const BUILD = 'tools/test/kubernetes/build.sh';
const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'];
interface ControlPlaneOptions {
  /** Nodes, named n1, n2, …, of one agent each. */
  nodes: number;
  images: Readonly<Record<string, TestImage>>;
  /** Resources of a node. */
  capacity?: Readonly<Record<string, string>>;
}

/** Entry of the audit log. */
export interface AuditEvent {
  auditID: string;
  verb: string;
  user: { username: string };
  objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
  requestReceivedTimestamp: string;
}

/** Returns the zone of a node: zone-1 for odd numbers, else zone-0. */
export const zoneOf = (node: string): string => `zone-${Number(node.slice(1)) % 2}`;

/** Directory of the programs; null if they have not been built. */
function builtPrograms(): string | null {
  const cache = join(projectRoot(), '.build', 'kubernetes');
  const versions = existsSync(cache) ? readdirSync(cache).sort().reverse() : [];
  const has = (dir: string) => PROGRAMS.every((name) => existsSync(join(dir, name)));
  return versions.map((name) => join(cache, name)).find(has) ?? null;
}

/** Returns null when a control plane can be started here, else the reason for a test's `skip`. */
export async function whyNoKubernetes(): Promise<string | null> {
  return builtPrograms() ? null : `not run: needs the control plane of Kubernetes, which ${BUILD} builds`;
}

export class ControlPlane {
  private readonly children = new Map<string, { child: ChildProcess; start(): void }>();
  private readonly token = randomBytes(16).toString('hex');
  private readonly killer: Killer;
  private started: { client: AdminClient; kubelets: Kubelets } | null = null;

  private constructor(
    private readonly dir: string,
    private readonly programs: string,
    private readonly port: number,
    private readonly options: ControlPlaneOptions,
  ) {
    this.killer = new Killer(`ZF_KUBERNETES=${dir}`);
  }

  /** Starts a cluster; takes about ten seconds on an idle machine. */
  static async start(options: ControlPlaneOptions): Promise<ControlPlane> {
    const programs = builtPrograms();
    if (!programs) throw new Error(`${BUILD} has not been run`);
    const dir = await mkdtemp(join(tmpdir(), 'zf-kubernetes-'));
    const plane = new ControlPlane(dir, programs, await freePort(), options);
    try {
      await plane.startAll();
      return plane;
    } catch (error) {
      const logs = await plane.logs();
      await plane.stop();
      throw new Error(`Kubernetes did not start: ${String(error)}\n${logs}`, { cause: error });
    }
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  get client(): AdminClient {
    return this.running.client;
  }

  get kubelets(): Kubelets {
    return this.running.kubelets;
  }

  /** Marks all processes, to end them. */
  private get env(): NodeJS.ProcessEnv {
    return { ZF_KUBERNETES: this.dir };
  }

  private get running() {
    if (!this.started) throw new Error('the control plane does not run');
    return this.started;
  }

  /** Writes the kubeconfig of an identity. Returns its path. */
  async kubeconfig(name: string, token: string, namespace = 'default'): Promise<string> {
    const path = join(this.dir, `${name}.kubeconfig`);
    const cluster = { server: this.url, 'certificate-authority': join(this.dir, 'certs', 'apiserver.crt') };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': name,
      contexts: [{ name, context: { cluster: 'test', user: name, namespace } }],
      clusters: [{ name: 'test', cluster }],
      users: [{ name, user: { token } }],
    };
    await writeFile(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  adminKubeconfig(namespace?: string): Promise<string> {
    return this.kubeconfig('admin', this.token, namespace);
  }

  /** Gives a namespace the autoscaler's account with the rights of the manifests. Returns its kubeconfig. */
  async autoscalerKubeconfig(namespace: string): Promise<string> {
    const rights = join(projectRoot(), 'infra', 'kubernetes', 'base', 'autoscaler-rights.yaml');
    const admin = await this.adminKubeconfig(namespace);
    await run(join(this.programs, 'kubectl'), ['--kubeconfig', admin, 'apply', '-f', rights]);
    return this.kubeconfig(AUTOSCALER, await this.tokenOf(namespace, AUTOSCALER), namespace);
  }

  /** Returns a token of a service account, as pods get them. */
  private async tokenOf(namespace: string, account: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    const { status } = await untilDone(() => this.client.post(path, { spec: {} }));
    return status?.token ?? '';
  }

  /** Reads the audit log: requests in order, without those of the control plane and of tests. */
  async audit(): Promise<AuditEvent[]> {
    const file = join(this.dir, 'audit.log');
    const text = existsSync(file) ? await readFile(file, 'utf8') : '';
    // The last line may not be complete.
    const lines = text.split('\n').slice(0, -1);
    const events = lines.map((line): AuditEvent => JSON.parse(line));
    // A watch is written at its start and at its end.
    return [...new Map(events.map((event) => [event.auditID, event])).values()];
  }

  /** Takes the API server away, as a failure of its machine. */
  async killServer(): Promise<void> {
    const { child } = this.children.get('kube-apiserver') ?? {};
    if (!child) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async restartServer(): Promise<void> {
    this.children.get('kube-apiserver')?.start();
    await this.untilReady();
  }

  async stop(): Promise<void> {
    await this.started?.kubelets.close();
    this.started?.client.close();
    await this.killer.killAll();
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  async logs(): Promise<string> {
    const texts = [...this.children.keys()].map((name) =>
      readFile(join(this.dir, `${name}.log`), 'utf8').catch(() => ''),
    );
    return (await Promise.all(texts)).map((text) => text.slice(-2_000)).join('\n');
  }

  private async startAll(): Promise<void> {
    await mkdir(join(this.dir, 'pods'));
    await this.writeFiles();
    const [etcdPort, peerPort] = [await freePort(), await freePort()];
    const etcd = `http://127.0.0.1:${etcdPort}`;
    this.daemon('etcd', etcdArguments(this.dir, etcd, peerPort));
    this.daemon('kube-apiserver', serverArguments(this.dir, this.port, etcd));
    // The server writes its certificate at its start.
    const client = await untilDone(
      async () => new AdminClient(this.url, this.token, join(this.dir, 'certs', 'apiserver.crt')),
    );
    const { images, nodes, capacity = { cpu: '4', memory: '8Gi', pods: '10' } } = this.options;
    const kubelets = new Kubelets({
      client,
      dir: join(this.dir, 'pods'),
      images,
      capacity,
      zoneOf,
      env: this.env,
    });
    this.started = { client, kubelets };
    await this.untilReady();
    const kubeconfig = await this.adminKubeconfig();
    this.daemon('kube-controller-manager', controllerArguments(this.dir, kubeconfig));
    this.daemon('kube-scheduler', clientArguments(kubeconfig));
    kubelets.start();
    for (let node = 1; node <= nodes; node += 1) await kubelets.startNode(`n${node}`);
    // The service account of pods without one.
    await untilDone(() => client.get('/api/v1/namespaces/default/serviceaccounts/default'));
  }

  private async writeFiles(): Promise<void> {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    await writeFile(join(this.dir, 'accounts.key'), privateKey, { mode: 0o600 });
    await writeFile(join(this.dir, 'accounts.pub'), publicKey);
    await writeFile(join(this.dir, 'tokens.csv'), `${this.token},admin,admin,system:masters\n`, {
      mode: 0o600,
    });
    const policy = {
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived'],
      rules: [{ level: 'None', users: ['admin', 'system:apiserver'] }, { level: 'Metadata' }],
    };
    await writeFile(join(this.dir, 'audit.yaml'), JSON.stringify(policy));
  }

  private untilReady(): Promise<void> {
    // The roles and priorities of the server itself are written after its start.
    return untilDone(async () => {
      await this.client.get('/api/v1/namespaces/default');
      await this.client.get('/apis/rbac.authorization.k8s.io/v1/clusterroles/edit');
      await this.client.get('/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical');
    });
  }

  private daemon(name: string, args: string[]): void {
    const start = () => {
      const log = join(this.dir, `${name}.log`);
      // The shell opens the log, and is replaced by the program.
      const child = spawn(
        '/bin/sh',
        ['-c', 'log=$1; shift; exec "$@" >> "$log" 2>&1', 'sh', log, join(this.programs, name), ...args],
        {
          cwd: this.dir,
          env: { PATH: process.env.PATH, ...this.env },
          stdio: 'ignore',
        },
      );
      this.children.set(name, { child, start });
    };
    start();
  }
}
