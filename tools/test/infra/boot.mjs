// A machine's first start: the user data of a plan by the real provider, run on a made-up machine.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Expectations, Machine, named } from './machine.mjs';
import { OFFLINE_PROVIDER } from './plans.mjs';

const DIRECTORY = 'workers-alone';
/** Limit of EC2. */
const MAX_USER_DATA = 16_384;
const ID = 'i-0123456789abcdef0';
const URL = 'rediss://user:password@redis.example.com:6379';

const CONFIGURATION = `
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

${OFFLINE_PROVIDER.replace('{', '{\n  region = "eu-central-1"')}

module "workers" {
  source         = "../modules/workers"
  name           = "zf-test"
  region         = "eu-central-1"
  account_id     = "123456789012"
  images         = { cuda = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/worker-cuda:0.1.0" }
  machine_images = { cuda = "ami-0123456789abcdef0", driver = "580.95.05" }
  log_group      = { name = "/zf-test/workers", arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/zf-test/workers" }
  redis          = { url_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/redis-url-AbCdEf" }

  pools = {
    gpu = {
      availability_zones = ["eu-central-1a"]
      machines = {
        h100 = {
          slots          = 8
          instance_types = ["p5.48xlarge"]
          on_demand      = { max = 2 }
          reserved       = { max = 2, capacity_reservation = "cr-0123456789abcdef0", capacity_block = true }
        }
      }
    }
  }

  network = {
    private_subnet_ids      = { "eu-central-1a" = "subnet-0123456789abcdef0" }
    worker_security_group   = "sg-0123456789abcdef0"
    pool_security_group_ids = { gpu = "sg-0123456789abcdef1" }
  }

  storage = {
    object_store_url = "s3://zf-test-bucket"
    bucket_arn       = "arn:aws:s3:::zf-test-bucket"
    objects_arn      = "arn:aws:s3:::zf-test-bucket/"
  }
}
`;

/** User data of the templates of a plan, by name. */
async function planUserData(workspace) {
  mkdirSync(join(workspace.source, DIRECTORY));
  writeFileSync(join(workspace.source, DIRECTORY, 'main.tf'), CONFIGURATION);
  await workspace.prepare(DIRECTORY);
  const planned = await workspace.terraform(DIRECTORY, ['plan', '-no-color', '-out=plan']);
  if (planned.code !== 0) throw new Error(planned.output);
  const { output } = await workspace.terraform(DIRECTORY, ['show', '-json', 'plan']);
  const plan = JSON.parse(output.slice(output.indexOf('{')));
  const [{ resources }] = plan.planned_values.root_module.child_modules;
  return Object.fromEntries(
    resources
      .filter(({ type }) => type === 'aws_launch_template')
      .map(({ index, values }) => [index, Buffer.from(values.user_data, 'base64').toString()]),
  );
}

/** The first start, with a metadata service that answers late. */
async function firstStart(machine, script, expect) {
  machine.fails('curl', 3);
  machine.prints('curl', ID);
  const { code, output } = await machine.run(script);
  expect.equal(`the first start (${output})`, code, 0);
  const calls = machine.calls();
  expect.equal('requests to the metadata service', named(calls, 'curl').length, 5);
  expect.equal(
    'what systemd starts',
    calls.at(-1),
    'systemctl enable --now --no-block zerofleet-worker.service',
  );
  const unit = machine.read('etc/systemd/system/zerofleet-worker.service');
  expect.contains('the unit', unit, `--log-opt awslogs-stream=gpu/${ID}`);
  expect.contains('the unit', unit, '--log-opt mode=non-blocking');
  expect.contains('the unit', unit, 'Restart=always');
  expect.contains('the environment', machine.read('etc/zerofleet/worker.env'), 'ZEROFLEET_POOL=gpu\n');
}

/** Each start of the worker, with services that answer late. */
async function eachStart(machine, expect) {
  const script = machine.read('usr/local/sbin/zerofleet-prepare');
  machine.prints('nvidia-smi', '580.95.05\n580.95.05\n');
  machine.prints('aws', URL);
  machine.fails('aws', 2);
  // The image is not there, and the registry does not let in at once.
  machine.fails('docker', 3);
  const { code, output } = await machine.run(script);
  expect.equal(`a start (${output})`, code, 0);
  expect.equal('the secret', machine.read('run/zerofleet/secret.env'), `ZEROFLEET_REDIS_URL=${URL}\n`);
  expect.equal(
    'calls of docker',
    named(machine.calls(), 'docker').map((call) => call.split(' ').slice(1, 3).join(' ')),
    ['image inspect', 'login --username', 'login --username', 'login --username', 'pull --quiet'],
  );
  await machine.run(script);
  expect.equal('calls of docker where the image is there', named(machine.calls(), 'docker').length, 1);
  machine.fails('aws', 1000);
  expect.equal('a start without secrets', (await machine.run(script)).code === 0, false);
  expect.equal('attempts', named(machine.calls(), 'aws').length, 10);
  machine.fails('aws', 0);
  machine.prints('nvidia-smi', '570.10.01\n');
  expect.equal('a start with another driver', (await machine.run(script)).code, 1);
  expect.equal('calls with another driver', named(machine.calls(), 'docker'), []);
}

/** The disks of a machine. */
async function disks(machine, expect) {
  const script = machine.read('usr/local/sbin/zerofleet-store');
  const mountOf = async (models) => {
    machine.prints('lsblk', models.map((model, index) => `/dev/nvme${index}n1 ${model}\n`).join(''));
    const { code, output } = await machine.run(script, ['/data']);
    expect.equal(`mounting ${models.length} disks (${output})`, code, 0);
    return machine.calls().filter((call) => !/^(blkid|lsblk|mountpoint) /.test(call));
  };
  const [EBS, NVME] = ['Amazon Elastic Block Store', 'Amazon EC2 NVMe Instance Storage'];
  const options = '-o noatime,nodev,nosuid';
  expect.equal('no disk', await mountOf([EBS]), []);
  expect.equal('one disk', await mountOf([EBS, NVME]), [
    'mkfs.xfs -f -q -L zerofleet /dev/nvme1n1',
    `mount ${options} /dev/nvme1n1 /data`,
  ]);
  expect.equal('three disks', await mountOf([EBS, NVME, NVME, NVME]), [
    'mdadm --create /dev/md/zerofleet --run --homehost=any --name=zerofleet --level=0 --raid-devices=3 /dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1',
    'mkfs.xfs -f -q -L zerofleet /dev/md/zerofleet',
    `mount ${options} /dev/md/zerofleet /data`,
  ]);
  machine.fails('blkid', 0);
  machine.prints('blkid', '/dev/md127\n');
  expect.equal('after a reboot', await mountOf([EBS, NVME, NVME]), [`mount ${options} /dev/md127 /data`]);
  machine.fails('mountpoint', 0);
  expect.equal('mounted already', await mountOf([EBS, NVME, NVME]), []);
}

/**
 * @param {import('./terraform.mjs').Workspace} workspace after `initRoot`
 * @returns {Promise<import('./static-checks.mjs').Result>}
 */
export async function testBoot(workspace) {
  const scripts = await planUserData(workspace);
  const expect = new Expectations();
  expect.equal('templates', Object.keys(scripts), ['gpu-h100', 'gpu-h100-reserved']);
  for (const script of Object.values(scripts)) {
    expect.equal('a size that EC2 takes', Buffer.byteLength(script) < MAX_USER_DATA, true);
    const machine = new Machine();
    try {
      await firstStart(machine, script, expect);
      await eachStart(machine, expect);
      await disks(machine, expect);
    } finally {
      machine.remove();
    }
  }
  return { name: 'first start of a machine', problem: expect.problems.join('\n') || null };
}
