import t from 'tap';
import type { Model, Problem } from '../../../contracts/index.js';
import { parseWeights } from '../../../formats/models/weights.js';
import { collect } from '../../../formats/testing/byte-source.js';
import { modelFolder, tarOf } from '../../../formats/testing/models.js';
import { TorchFileWriter } from '../../../formats/torch-file/write.js';
import { deepSpeedGolden, inFolder } from '../../testing/deepspeed-golden.js';

import { NORM, tensorFile, universalUploads, ZERO } from '../../testing/universal-checkpoint.js';

t.test('a universal checkpoint is uploaded as a model', async (t) => {
  const { stack, upload } = await universalUploads(t);

  await t.test('weights and state, each at its bytes in the files', async (t) => {
    const reply = await upload();
    t.equal(reply.statusCode, 201, reply.body);
    const model = reply.json<Model>();
    t.match(model, { model_type: 'llama', dtypes: ['fp32'], optimizer_steps: 12 });
    t.same(model.ignored_files, ['latest_universal', 'mp_rank_00_model_states.pt']);
    const weights = parseWeights(await stack.objects.get(`models/${model.id}/WEIGHTS.json`));
    t.equal(weights.optimizer_steps, 12);
    const states = weights.files.flatMap(({ tensors }) => tensors.map(({ state }) => state));
    for (const state of ['master', 'exp_avg', 'exp_avg_sq'])
      t.equal(states.filter((other) => other === state).length, 11, state);
    const file = weights.files.find(({ file }) => file === 'zero/model.norm.weight/fp32.pt');
    const { byte_begin, byte_end } = file?.tensors[0] ?? { byte_begin: 0, byte_end: 0 };
    const bytes = await stack.objects.get(`models/${model.id}/${file?.file}`, {
      begin: byte_begin,
      end: byte_end,
    });
    t.equal(bytes.length, 16 * 4);
  });

  await t.test('flat tensors of stage 3, and a step count only in the groups', async (t) => {
    const values = Array.from({ length: 16 }, (_, i) => i);
    const flat = await upload(async (files) =>
      files.set(`${NORM}/fp32.pt`, await tensorFile([16], values, false)),
    );
    t.equal(flat.statusCode, 201, flat.body);
    const writer = new TorchFileWriter();
    const groups = await collect(writer.file(new Map([['param_groups', [new Map([['step', 9]])]]])));
    const counted = await upload((files) => {
      for (const name of [...files.keys()]) if (name.endsWith('step.pt')) files.delete(name);
      files.set(`${ZERO}/optimizer_state.pt`, groups);
    });
    t.equal(counted.json<Model>().optimizer_steps, 9);
  });

  await t.test('without state it is a model of weights only', async (t) => {
    const reply = await upload((files) => {
      for (const name of [...files.keys()])
        if (/(exp_avg|exp_avg_sq|step)\.pt$/.test(name)) files.delete(name);
    });
    t.equal(reply.statusCode, 201, reply.body);
    t.equal(reply.json<Model>().optimizer_steps, undefined);
  });

  await t.test('the state of any optimizer, and frozen parameters', async (t) => {
    const uploadOf = async (change: (files: Map<string, Buffer>) => unknown) =>
      (await upload(change)).json<Model>();
    const renamed = (from: RegExp, to: string) => (files: Map<string, Buffer>) => {
      for (const [name, content] of [...files]) {
        if (/exp_avg/.test(name)) files.delete(name);
        if (from.test(name)) files.set(name.replace(from, to), content);
      }
    };
    const dataset = (await stack.upload('to be or not to be '.repeat(20))).id;
    const ask = async (model: string, optimizer: object) => {
      const train = { steps: 2, sequence_length: 16, optimizer };
      const payload = { model: { init_from: { model, restore: 'full' } }, data: { dataset }, train };
      const reply = await stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', payload });
      return reply.json<Problem>().errors?.map(({ code, message }) => `${code}: ${message}`) ?? [];
    };
    const cases: [object, RegExp, string, string[]][] = [
      [{ type: 'lion' }, /exp_avg\.pt/, 'exp_avg.pt', ['exp_avg']],
      [{ type: 'adagrad' }, /exp_avg_sq\.pt/, 'sum.pt', ['sum']],
      [{ type: 'sgd' }, /exp_avg\.pt/, 'momentum_buffer.pt', ['momentum_buffer']],
      [{ type: 'sgd', momentum: 0 }, /^$/, '', []],
    ];
    for (const [optimizer, from, to, states] of cases) {
      const { id, ...model } = await uploadOf(renamed(from, to));
      t.match(model, { optimizer_steps: 12, optimizer_states: states, frozen_parameters: [] });
      t.strictSame(await ask(id, optimizer), []);
      t.match(await ask(id, { type: 'adamw' }), [
        /checkpoint_optimizer_mismatch: .* adamw needs exp_avg and exp_avg_sq/,
      ]);
    }
    const { id, ...model } = await uploadOf((files) => {
      for (const name of [...files.keys()])
        if (name.startsWith(NORM) && !name.endsWith('fp32.pt')) files.delete(name);
    });
    t.match(model, { optimizer_steps: 12, frozen_parameters: ['model.norm.weight'] });
    t.strictSame(await ask(id, { param_groups: [{ match: 'model.norm.*', frozen: true }] }), []);
    t.match(await ask(id, {}), [
      /checkpoint_frozen_mismatch: model.norm.weight was frozen in model .*, and the job trains it/,
    ]);
  });

  await t.test('as DeepSpeed wrote it, raw and universal', async (t) => {
    const files = await deepSpeedGolden('deepspeed');
    const config = files.get('config.json') as Buffer;
    for (const folder of ['zero2/global_step6', 'zero3/global_step6_universal']) {
      const content = [...files].filter(([name]) => name.startsWith(`${folder}/`));
      const payload = await tarOf([['config.json', config], ...content]);
      const headers = { 'content-type': 'application/x-tar' };
      const reply = await stack.request({ method: 'POST', url: '/v1/models?name=ds', headers, payload });
      t.equal(reply.statusCode, 201, reply.body);
      const model = reply.json<Model>();
      t.match(model, {
        optimizer_steps: 6,
        optimizer_states: ['exp_avg', 'exp_avg_sq'],
        frozen_parameters: [],
      });
      const unused = model.ignored_files.filter((name) => name.endsWith('model_states.pt'));
      t.equal(unused.length, folder.startsWith('zero2') ? 1 : 2, 'the model states are not used');
      for (const name of unused) t.notOk(await stack.objects.head(`models/${model.id}/${name}`));
      t.notOk(model.files.some(({ name }) => unused.includes(name)));
    }
  });

  await t.test('of several checkpoints the one that latest names is read', async (t) => {
    const golden = await deepSpeedGolden('deepspeed');
    const config = ['config.json', golden.get('config.json') as Buffer] as const;
    const tag = (step: number, files: 'zero2' | 'zero3') =>
      [...inFolder(golden, `${files}/global_step6`)].map(
        ([name, content]) => [`ds/global_step${step}/${name}`, content] as const,
      );
    const latest = (step: number) => ['ds/latest', Buffer.from(`global_step${step}\n`)] as const;
    const [old, recent] = [tag(5, 'zero2'), tag(10, 'zero3')];
    const send = async (...files: (readonly [string, Buffer])[]) => {
      const payload = await tarOf([config, ...files]);
      const headers = { 'content-type': 'application/x-tar' };
      return stack.request({ method: 'POST', url: '/v1/models?name=tags', headers, payload });
    };
    for (const [step, ignored] of [
      [5, recent],
      [10, old],
    ] as const)
      for (const folders of [
        [old, recent],
        [recent, old],
      ]) {
        const reply = await send(latest(step), ...folders.flat());
        t.equal(reply.statusCode, 201, reply.body);
        for (const [name] of ignored) t.ok(reply.json<Model>().ignored_files.includes(name), name);
      }
    t.equal((await send(...old, latest(5))).statusCode, 201, 'with one checkpoint the order does not matter');
    for (const [files, message] of [
      [[...old, ...recent], /the checkpoints ds\/global_step5 and ds\/global_step10; send one of them/],
      [[...old, ...recent, latest(10)], /latest names .*ds\/global_step10, .* has ds\/global_step5/],
      [[latest(7), ...old], /latest names .*ds\/global_step7, .* has ds\/global_step5/],
    ] as const) {
      const reply = await send(...files);
      t.match(reply.json<Problem>(), { code: 'model_archive_invalid', detail: message });
    }
  });

  await t.test('a conversion of DeepSpeed that mixed the parameters up is refused', async (t) => {
    const golden = await deepSpeedGolden('modes');
    const send = async (folder: string) => {
      const files = [...golden].filter(([name]) => name.startsWith(`${folder}/`));
      const payload = await tarOf([
        ['config.json', golden.get('round_robin/config.json') as Buffer],
        ...files,
      ]);
      const headers = { 'content-type': 'application/x-tar' };
      return stack.request({ method: 'POST', url: '/v1/models?name=mode', headers, payload });
    };
    const raw = await send('round_robin/global_step5');
    t.equal(raw.statusCode, 201, raw.body);
    t.match((await send('round_robin/global_step5_universal')).json<Problem>(), {
      code: 'model_tensor_mismatch',
      detail: /which is no rounding: ds_to_universal.py mixes up/,
    });
  });

  await t.test('a dynamic loss scaler is kept for jobs', async (t) => {
    const files = inFolder(await deepSpeedGolden('modes'), 'fp16');
    const headers = { 'content-type': 'application/x-tar' };
    const payload = await tarOf([...files]);
    const reply = await stack.request({ method: 'POST', url: '/v1/models?name=fp16', headers, payload });
    t.equal(reply.statusCode, 201, reply.body);
    const weights = parseWeights(await stack.objects.get(`models/${reply.json<Model>().id}/WEIGHTS.json`));
    t.match(weights.loss_scaler, {
      type: 'dynamic',
      scale: 131_072,
      iteration: 5,
      last_overflow_iteration: 2,
    });
  });

  await t.test('a raw checkpoint beside safetensors is ignored, as the Trainer writes it', async (t) => {
    const files = await deepSpeedGolden('deepspeed');
    const raw = [...files].filter(([name]) => name.startsWith('zero2/global_step6/'));
    const payload = await tarOf([...modelFolder(), ...raw]);
    const headers = { 'content-type': 'application/x-tar' };
    const reply = await stack.request({ method: 'POST', url: '/v1/models?name=trainer', headers, payload });
    t.equal(reply.statusCode, 201, reply.body);
    t.equal(reply.json<Model>().ignored_files.length, 3);
    t.equal(reply.json<Model>().optimizer_states, undefined);
  });

  await t.test('which parts a job may restore', async (t) => {
    const { id } = (await upload()).json<Model>();
    const dataset = (await stack.upload('to be or not to be '.repeat(20))).id;
    const ask = async (restore: string, optimizer: object = {}) => {
      const payload = {
        model: { init_from: { model: id, restore } },
        data: { dataset },
        train: { steps: 2, sequence_length: 16, optimizer },
      };
      const reply = await stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', payload });
      return reply.json<Problem>().errors?.map(({ pointer, code }) => `${pointer} ${code}`) ?? [];
    };
    t.strictSame(await ask('full'), []);
    t.strictSame(await ask('weights'), []);
    t.strictSame(await ask('weights_16bit'), []);
    t.strictSame(await ask('continue'), ['/model/init_from/restore field_without_effect']);
    for (const restore of ['full', 'weights_16bit'])
      t.strictSame(await ask(restore, { type: 'lion' }), [
        '/model/init_from/restore checkpoint_optimizer_mismatch',
      ]);
  });
});
