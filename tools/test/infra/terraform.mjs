// Finds Terraform and the AWS provider, and runs them on a copy of infra/terraform. Nothing is written into the
// checkout, nothing is downloaded, and no credentials of this machine are used.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { capture } from '../../bootstrap/command.mjs';
import { inRoot } from '../../bootstrap/paths.mjs';

/** Path of the provider of `versions.tf` in a mirror. */
const PROVIDER = join('registry.terraform.io', 'hashicorp', 'aws');
const PLATFORM = `${process.platform}_${{ x64: 'amd64', arm64: 'arm64' }[process.arch] ?? process.arch}`;
/** The lock files have the hash of the provider for this platform. */
const HAS_LOCKED_HASH = PLATFORM === 'linux_amd64';
/** Each process takes up to 900 MB. */
const AT_ONCE = Math.min(2, availableParallelism());

/**
 * Directories that may contain providers: those of Terraform's configuration, its default directories, and everything
 * below /opt.
 */
function mirrorCandidates() {
  const { TF_CLI_CONFIG_FILE, TF_PLUGIN_CACHE_DIR } = process.env;
  const configured = [TF_CLI_CONFIG_FILE, join(homedir(), '.terraformrc')]
    .filter((file) => file && existsSync(file))
    .flatMap((file) => [
      ...readFileSync(file, 'utf8').matchAll(/^\s*(?:path|plugin_cache_dir)\s*=\s*"([^"]+)"/gm),
    ])
    .map(([, path]) => path);
  const below = (dir) => (existsSync(dir) ? readdirSync(dir).map((name) => join(dir, name)) : []);
  return [
    TF_PLUGIN_CACHE_DIR,
    ...configured,
    ...below(join(homedir(), '.terraform.d')),
    ...below('/usr/local/share/terraform'),
    ...below('/usr/share/terraform'),
    ...below('/opt'),
  ].filter(Boolean);
}

/** The version of the provider in the lock file. */
function lockedVersion() {
  const text = readFileSync(inRoot('infra', 'terraform', '.terraform.lock.hcl'), 'utf8');
  return /version\s*=\s*"([^"]+)"/.exec(text)[1];
}

const holdsProvider = (mirror) => existsSync(join(mirror, PROVIDER, lockedVersion(), PLATFORM));

/** Environment without this machine's own Terraform settings. */
const withoutOwnSettings = () =>
  Object.fromEntries(
    Object.keys(process.env)
      .filter((name) => name.startsWith('TF_'))
      .map((name) => [name, '']),
  );

/**
 * @returns {Promise<{mirror: string} | {missing: string}>} the directory with the provider, or the reason why nothing
 *   can run here
 */
export async function findTerraform() {
  const { code, output } = await capture(['terraform', 'version', '-json'], {
    env: { ...withoutOwnSettings(), CHECKPOINT_DISABLE: '1' },
  });
  if (code !== 0) return { missing: 'terraform is not on the PATH' };
  const version = /"terraform_version":\s*"(\d+)\.(\d+)/.exec(output);
  if (!version || Number(version[1]) < 1 || (version[1] === '1' && Number(version[2]) < 11))
    return { missing: 'terraform is older than 1.11' };
  const mirror = mirrorCandidates().find(holdsProvider);
  return mirror
    ? { mirror }
    : {
        missing: `no local mirror has the AWS provider ${lockedVersion()}; \`terraform -chdir=infra/terraform providers mirror ~/.terraform.d/plugins\` creates one`,
      };
}

/** A copy of infra/terraform for running commands, with a queue. */
export class Workspace {
  dir = mkdtempSync(join(tmpdir(), 'zf-terraform-'));
  #running = 0;
  #waiting = [];

  /** @param {string} mirror directory with the provider */
  constructor(mirror) {
    this.source = join(this.dir, 'terraform');
    cpSync(inRoot('infra', 'terraform'), this.source, {
      recursive: true,
      filter: (path) =>
        !/[/\\]\.terraform$|\.tfstate/.test(path) &&
        (HAS_LOCKED_HASH || !path.endsWith('.terraform.lock.hcl')),
    });
    const config = join(this.dir, 'cli.tfrc');
    writeFileSync(
      config,
      `provider_installation {\n  filesystem_mirror {\n    path = ${JSON.stringify(mirror)}\n  }\n}\n`,
    );
    this.env = {
      ...withoutOwnSettings(),
      TF_CLI_CONFIG_FILE: config,
      TF_IN_AUTOMATION: '1',
      TF_INPUT: '0',
      CHECKPOINT_DISABLE: '1',
      AWS_ACCESS_KEY_ID: 'none',
      AWS_SECRET_ACCESS_KEY: 'none',
      AWS_SESSION_TOKEN: '',
      AWS_PROFILE: '',
      AWS_CONFIG_FILE: join(this.dir, 'no-aws-config'),
      AWS_SHARED_CREDENTIALS_FILE: join(this.dir, 'no-aws-credentials'),
      AWS_EC2_METADATA_DISABLED: 'true',
    };
  }

  /** All directories with a configuration, relative to infra/terraform; '.' is the root module. */
  directories() {
    const below = (parent) => readdirSync(join(this.source, parent)).map((name) => join(parent, name));
    return ['.', ...below('modules'), ...below('examples')];
  }

  /**
   * Runs terraform in a directory of the copy after waiting in the queue.
   * @param {string} directory relative to the copy
   * @param {string[]} args
   */
  terraform(directory, args) {
    return this.#inTurn(() => this.terraformAtOnce(directory, args));
  }

  /** Runs terraform without waiting in the queue. */
  terraformAtOnce(directory, args) {
    return capture(['terraform', `-chdir=${join(this.source, directory)}`, ...args], { env: this.env });
  }

  /**
   * Installs the provider of the lock file once, for the root module. Other directories reuse it: checking its 700 MB
   * costs seconds.
   */
  async initRoot() {
    const { code, output } = await this.terraform('.', [
      'init',
      '-backend=false',
      '-no-color',
      ...(HAS_LOCKED_HASH ? ['-lockfile=readonly'] : []),
    ]);
    if (code !== 0) throw new Error(`terraform init failed:\n${output}`);
  }

  /** Initializes a directory, after `initRoot`. */
  async prepare(directory) {
    if (directory === '.') return;
    const data = join(this.source, directory, '.terraform');
    if (existsSync(data)) return;
    mkdirSync(data);
    symlinkSync(join(this.source, '.terraform', 'providers'), join(data, 'providers'));
    // Examples have their own.
    const lock = join(this.source, directory, '.terraform.lock.hcl');
    if (!existsSync(lock)) cpSync(join(this.source, '.terraform.lock.hcl'), lock);
    const { code, output } = await this.terraform(directory, ['get', '-no-color']);
    if (code !== 0) throw new Error(`terraform get failed in ${directory}:\n${output}`);
  }

  remove() {
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #inTurn(work) {
    if (this.#running >= AT_ONCE) await new Promise((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      // A waiting task takes over the slot.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}
