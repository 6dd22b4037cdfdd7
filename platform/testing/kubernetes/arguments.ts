/** Arguments of the programs of a test's control plane, whose files are in one directory. */
import { join } from 'node:path';

/** Controllers that act on pods, nodes and namespaces, and those that these need. */
const CONTROLLERS = [
  ...['nodelifecycle', 'podgc', 'garbagecollector', 'namespace', 'resourcequota', 'disruption', 'endpoint'],
  ...['serviceaccount', 'serviceaccount-token', 'root-ca-cert-publisher'],
  ...['deployment', 'replicaset', 'statefulset'],
];

export const etcdArguments = (dir: string, url: string, peerPort: number): string[] => [
  `--data-dir=${join(dir, 'etcd')}`,
  ...['--listen-client-urls', '--advertise-client-urls'].map((name) => `${name}=${url}`),
  `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
];

export const serverArguments = (dir: string, port: number, etcd: string): string[] => [
  ...[`--etcd-servers=${etcd}`, '--bind-address=127.0.0.1', `--secure-port=${port}`, '--insecure-port=0'],
  ...['--advertise-address=127.0.0.1', '--endpoint-reconciler-type=none', `--cert-dir=${join(dir, 'certs')}`],
  ...[`--token-auth-file=${join(dir, 'tokens.csv')}`, '--authorization-mode=RBAC', '--allow-privileged'],
  '--service-cluster-ip-range=10.0.0.0/24',
  '--service-account-issuer=https://kubernetes.default.svc',
  `--service-account-signing-key-file=${join(dir, 'accounts.key')}`,
  `--service-account-key-file=${join(dir, 'accounts.pub')}`,
  `--audit-log-path=${join(dir, 'audit.log')}`,
  `--audit-policy-file=${join(dir, 'audit.yaml')}`,
  // Pods of a node that falls silent are deleted at once.
  ...['--default-not-ready-toleration-seconds=1', '--default-unreachable-toleration-seconds=1'],
];

export const controllerArguments = (dir: string, kubeconfig: string): string[] => [
  ...clientArguments(kubeconfig),
  `--controllers=${CONTROLLERS.join(',')}`,
  ...['--node-monitor-period=1s', '--node-monitor-grace-period=20s'],
  `--service-account-private-key-file=${join(dir, 'accounts.key')}`,
  `--root-ca-file=${join(dir, 'certs', 'apiserver.crt')}`,
];

/** Arguments of a program that is the only one of its kind, and serves nothing. */
export const clientArguments = (kubeconfig: string): string[] => [
  `--kubeconfig=${kubeconfig}`,
  '--leader-elect=false',
  '--port=0',
  '--secure-port=0',
];
