// The recipe of the machine image: its format, its validity for Packer where that is found, and its script on a made-up
// machine.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { capture } from '../../bootstrap/command.mjs';
import { inRoot } from '../../bootstrap/paths.mjs';
import { Expectations, Machine, named } from './machine.mjs';

const RECIPE = inRoot('infra', 'ami');
const REGISTRY = '123456789012.dkr.ecr.eu-central-1.amazonaws.com';
const IMAGE = `${REGISTRY}/zerofleet/worker-cuda:0.1.0`;
const VARIABLES = {
  region: 'eu-central-1',
  accelerator: 'cuda',
  source_ami: 'ami-0123456789abcdef0',
  nvidia_driver: '580.95.05',
  worker_image: IMAGE,
  subnet_id: 'subnet-0123456789abcdef0',
  instance_profile: 'zf-images',
};
const REFUSED = { accelerator: 'tpu', source_ami: 'newest', nvidia_driver: 'any', worker_image: 'worker' };

/** Terraform's formatter reads any HCL, but as a file only its own. */
async function checkFormat(workspace) {
  const files = readdirSync(RECIPE).filter((name) => name.endsWith('.pkr.hcl'));
  const results = await Promise.all(
    files.map((name) =>
      capture(['sh', '-c', 'terraform fmt -check -diff - < "$1"', 'sh', join(RECIPE, name)], {
        env: workspace.env,
      }),
    ),
  );
  const problems = results.filter(({ code }) => code !== 0).map(({ output }) => output.trim());
  return { name: 'format of infra/ami', problem: problems.join('\n') || null };
}

/** The file alone, without the plugins that Packer 1.7 and later would have to download. */
async function validate() {
  const name = 'infra/ami is valid for Packer';
  const packer = (variables) =>
    capture(
      [
        'packer',
        'validate',
        ...Object.entries(variables).map(([variable, value]) => `-var=${variable}=${value}`),
        join(RECIPE, 'worker.pkr.hcl'),
      ],
      { env: { CHECKPOINT_DISABLE: '1' } },
    );
  const { code, output } = await packer(VARIABLES);
  if (code === 127) return { name, problem: null, skipped: 'packer is not on the PATH' };
  if (/github.com\/hashicorp\/amazon|unknown source/.test(output) && code !== 0)
    return { name, problem: null, skipped: 'packer has no plugin for Amazon' };
  if (code !== 0) return { name, problem: output.trim() };
  const accepted = [];
  for (const [variable, value] of Object.entries(REFUSED)) {
    const refused = await packer({ ...VARIABLES, [variable]: value });
    if (refused.code === 0) accepted.push(`${variable} = ${value} is not refused`);
  }
  return { name, problem: accepted.join('\n') || null };
}

async function provision() {
  const script = readFileSync(join(RECIPE, 'provision.sh'), 'utf8');
  const retry = readFileSync(inRoot('infra/terraform/modules/workers/scripts/retry.sh'), 'utf8');
  const env = { ACCELERATOR: 'cuda', DRIVER: '580.95.05', EFA_INSTALLER: '', IMAGE, REGISTRY };
  const machine = new Machine();
  const expect = new Expectations();
  try {
    machine.writes('tmp/retry.sh', retry);
    machine.prints('nvidia-smi', '580.95.05\n');
    machine.fails('dnf', 2);
    machine.fails('docker', 2);
    const { code, output } = await machine.run(script, [], env);
    expect.equal(`provisioning (${output})`, code, 0);
    const calls = machine.calls();
    expect.equal(
      'calls of docker',
      named(calls, 'docker').map((call) => call.split(' ')[1]),
      ['login', 'login', 'login', 'pull'],
    );
    expect.equal(
      'region of the registry',
      named(calls, 'aws')[0],
      'aws ecr get-login-password --region eu-central-1',
    );
    expect.equal(
      'installed',
      named(calls, 'dnf')
        .slice(0, 3)
        .map((call) => call.includes('awscli-2')),
      [true, true, true],
    );
    expect.equal('what is left', machine.read('tmp/retry.sh'), null);
    machine.writes('tmp/retry.sh', retry);
    machine.prints('nvidia-smi', '570.10.01\n');
    expect.equal('provisioning with another driver', (await machine.run(script, [], env)).code, 1);
  } finally {
    machine.remove();
  }
  return { name: 'infra/ami/provision.sh on a made-up machine', problem: expect.problems.join('\n') || null };
}

/**
 * @param {import('./terraform.mjs').Workspace} workspace
 * @returns {Promise<import('./static-checks.mjs').Result & {skipped?: string}>[]}
 */
export function testImages(workspace) {
  return [checkFormat(workspace), validate(), provision()];
}
