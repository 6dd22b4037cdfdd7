/** Address of the cluster and identity towards it: those of a pod's service account, or of a kubeconfig file. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { ZerofleetError } from '../../contracts/index.js';
import { Check, type Static, Type } from '../../platform/schema.js';

export interface ClusterAccess {
  server: URL;
  namespace: string;
  /** PEM of the cluster's certificate authority, and of a client certificate. */
  ca: string | undefined;
  cert: string | undefined;
  key: string | undefined;
  /** Reads the token, which the cluster renews; null: none. */
  token(): Promise<string | null>;
}

/** Where the cluster puts a pod's identity. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

const text = Type.Optional(Type.String());

const Kubeconfig = Type.Object({
  'current-context': Type.String(),
  contexts: Type.Array(
    Type.Object({
      name: Type.String(),
      context: Type.Object({ cluster: Type.String(), user: Type.String(), namespace: text }),
    }),
  ),
  clusters: Type.Array(
    Type.Object({
      name: Type.String(),
      cluster: Type.Object({
        server: Type.String(),
        'certificate-authority': text,
        'certificate-authority-data': text,
      }),
    }),
  ),
  users: Type.Array(
    Type.Object({
      name: Type.String(),
      user: Type.Object({
        token: text,
        tokenFile: text,
        'client-certificate': text,
        'client-certificate-data': text,
        'client-key': text,
        'client-key-data': text,
      }),
    }),
  ),
});
const kubeconfigs = new Check(Kubeconfig);
type Kubeconfig = Static<typeof Kubeconfig>;

/**
 * Finds the cluster: the one in which this program runs as a pod, unless KUBECONFIG names a file; otherwise that of
 * `~/.kube/config`.
 * @throws ZerofleetError `invalid_configuration`
 */
export async function findCluster(env: NodeJS.ProcessEnv): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, KUBECONFIG: file } = env;
  if (!file && host && port) return ofPod(host, port);
  return ofKubeconfig(file || join(homedir(), '.kube', 'config'));
}

async function ofPod(host: string, port: string): Promise<ClusterAccess> {
  const read = (name: string) => readFile(join(SERVICE_ACCOUNT, name), 'utf8');
  try {
    return {
      server: new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`),
      namespace: (await read('namespace')).trim(),
      ca: await read('ca.crt'),
      cert: undefined,
      key: undefined,
      token: async () => (await read('token')).trim(),
    };
  } catch (error) {
    throw invalid(`this pod has no token of a service account (${(error as Error).message})`);
  }
}

async function ofKubeconfig(file: string): Promise<ClusterAccess> {
  try {
    return await accessOf(await read(file), dirname(file));
  } catch (error) {
    throw invalid(`${file}: ${(error as Error).message}`);
  }
}

async function read(file: string): Promise<Kubeconfig> {
  const config: unknown = parse(await readFile(file, 'utf8'));
  if (!kubeconfigs.fits(config)) throw new Error(kubeconfigs.problems()[0]);
  return config;
}

/** @param dir directory of relative paths */
async function accessOf(config: Kubeconfig, dir: string): Promise<ClusterAccess> {
  const { context } = find(config.contexts, 'context', config['current-context']);
  const { cluster } = find(config.clusters, 'cluster', context.cluster);
  const { user } = find(config.users, 'user', context.user);
  const pem = async (data: string | undefined, path: string | undefined) =>
    data
      ? Buffer.from(data, 'base64').toString('utf8')
      : path
        ? readFile(resolve(dir, path), 'utf8')
        : undefined;
  const cert = await pem(user['client-certificate-data'], user['client-certificate']);
  const { tokenFile, token = null } = user;
  if (!tokenFile && token === null && !cert)
    throw new Error(
      `the user ${context.user} has neither a token, a tokenFile nor a client certificate; other ways to log in are not ` +
        'supported: run the autoscaler in the cluster, or create a token of a service account',
    );
  return {
    server: new URL(cluster.server),
    namespace: context.namespace || 'default',
    ca: await pem(cluster['certificate-authority-data'], cluster['certificate-authority']),
    cert,
    key: await pem(user['client-key-data'], user['client-key']),
    token: async () => (tokenFile ? (await readFile(resolve(dir, tokenFile), 'utf8')).trim() : token),
  };
}

function find<T extends { name: string }>(all: readonly T[], noun: string, name: string): T {
  const found = all.find((each) => each.name === name);
  if (!found) throw new Error(`there is no ${noun} ${name}`);
  return found;
}

const invalid = (problem: string) =>
  new ZerofleetError(
    'invalid_configuration',
    `ZEROFLEET_AUTOSCALE_CAPACITY=kubernetes found no cluster: ${problem}; run the autoscaler as a pod, or set KUBECONFIG to a ` +
      'file with the address of the cluster and a token',
  );
