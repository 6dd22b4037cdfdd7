import t from 'tap';
import type { Estimate, JobSpec, Problem } from '../../../contracts/index.js';
import { bestInstructionSet } from '../../../platform/process/cpu.js';
import { startTestStack } from '../../testing/stack.js';

t.test('estimates', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const spec: JobSpec = {
    model: { preset: 'llama-tiny' },
    data: { dataset: `ds_${'0'.repeat(26)}` },
    train: { steps: 5 },
    resources: { ranks: { min: 1, max: 3 } },
  };
  const estimate = (payload: object) => stack.request({ method: 'POST', url: '/v1/estimate', payload });
  const errors = async (payload: object) => {
    const reply = await estimate(payload);
    t.equal(reply.statusCode, 422, reply.body);
    return reply
      .json<Problem>()
      .errors.map(({ pointer, code, suggestion }) => [pointer, code, suggestion].filter(Boolean).join(' '))
      .sort();
  };

  t.test('a body that is not an object', async (t) => {
    for (const payload of ['5', '"text"', '[]', 'true']) {
      const headers = { 'content-type': 'application/json' };
      const reply = await stack.request({ method: 'POST', url: '/v1/estimate', headers, payload });
      t.match(
        reply.json(),
        { code: 'validation_failed', errors: [{ pointer: '', code: 'wrong_type' }] },
        payload,
      );
    }
  });

  t.test('no body, with any media type', async (t) => {
    for (const type of ['text/plain', 'application/x-tar', 'application/octet-stream', 'application/json']) {
      const headers = { 'content-type': type, 'content-length': '0' };
      const reply = await stack.request({ method: 'POST', url: '/v1/estimate', headers, payload: '' });
      t.match(reply.json(), { status: 400, code: 'body_required' }, type);
    }
  });

  t.test('neither the dataset nor the tokenizer needs to exist', async (t) => {
    const data = { ...spec.data, tokenizer: `mdl_${'0'.repeat(26)}`, chat_template: 'x', packing: 'whole' };
    const expected = (await estimate({ spec })).json();
    t.same((await estimate({ spec: { ...spec, data } })).json(), expected);
    const mixture = [{ dataset: `ds_${'1'.repeat(26)}` }, { uri: 's3://texts/a.txt' }];
    t.same((await estimate({ spec: { ...spec, data: { mixture } } })).json(), expected);
  });

  t.test('one entry for each allowed number of ranks', async (t) => {
    const reply = await estimate({ spec });
    t.equal(reply.statusCode, 200, reply.body);
    const { num_params, threads, instruction_set, data } = reply.json<Estimate>();
    t.equal(num_params, 3_344_640);
    t.equal(threads, 1);
    t.equal(instruction_set, bestInstructionSet());
    t.same(
      data.map(({ world_size }) => world_size),
      [1, 2, 3],
    );
    t.ok(
      data.every(({ bytes }, index) => index === 0 || bytes.master < (data[index - 1]?.bytes.master ?? 0)),
    );
  });

  t.test('the requested machine and sizes', async (t) => {
    const reply = await estimate({ spec, world_sizes: [4, 1], threads: 2, instruction_set: 'generic' });
    const { threads, instruction_set, data } = reply.json<Estimate>();
    t.same([threads, instruction_set], [2, 'generic']);
    t.same(
      data.map(({ world_size }) => world_size),
      [4, 1],
    );
    const one = (await estimate({ spec, world_sizes: [1], instruction_set: 'generic' })).json<Estimate>()
      .data[0];
    t.ok((data[1]?.bytes.activations ?? 0) > (one?.bytes.activations ?? 0));
  });

  t.test('the document is checked like a job document, with pointers into the body', async (t) => {
    t.same(
      await errors({
        spec: { ...spec, nmae: 'x', train: { steps: 1, micro_batch_size: 5 } },
        world_size: [1],
      }),
      [
        '/spec/nmae unknown_field name',
        '/spec/train/micro_batch_size micro_batch_not_divisor 4',
        '/world_size unknown_field world_sizes',
      ],
    );
    t.same(await errors({ spec: { ...spec, train: {} } }), ['/spec/train/steps missing_field']);
    t.same(await errors({}), ['/spec missing_field']);
    t.same(await errors({ spec: 3 }), ['/spec wrong_type']);
    t.same(await errors({ spec: { ...spec, deepspeed_config: { amp: { enabled: true } } } }), [
      '/spec/deepspeed_config/amp deepspeed_key_unsupported',
    ]);
  });

  t.test('more ranks than leaves', async (t) => {
    t.same(await errors({ spec, world_sizes: [2, 5] }), ['/world_sizes/1 too_many_ranks 4']);
    t.same(await errors({ spec: { ...spec, zero: { stage: 1 } }, world_sizes: [4] }), [
      '/world_sizes/0 too_many_ranks 3',
    ]);
  });

  t.test('ranks that cannot hold all experts together', async (t) => {
    const experts = {
      ...spec,
      model: { preset: 'mixtral-tiny' },
      zero: { expert_parallel_size: 2 },
      resources: { ranks: { max: 4 } },
    };
    t.same(await errors({ spec: experts, world_sizes: [2, 3] }), [
      '/world_sizes/1 expert_parallel_not_divisor 2',
    ]);
  });

  t.test('a DeepSpeed configuration is translated first', async (t) => {
    const { train: _, ...rest } = spec;
    const deepspeedConfig = {
      bf16: { enabled: true },
      train_micro_batch_size_per_gpu: 4,
      gradient_accumulation_steps: 3,
      zero_optimization: { stage: 2 },
    };
    const reply = await estimate({
      spec: { ...rest, train: { steps: 1 }, deepspeed_config: deepspeedConfig },
    });
    t.equal(reply.statusCode, 200, reply.body);
  });
});

t.test('the instruction set of a machine, from its cpuinfo', async (t) => {
  const flags = (...names: string[]) =>
    `processor\t: 0\nflags\t\t: fpu ${names.join(' ')} hypervisor\nbugs\t\t:\n`;
  const avx2 = ['avx2', 'fma', 'f16c'];
  const avx512 = [...avx2, 'avx512f', 'avx512bw', 'avx512dq', 'avx512vl'];
  t.equal(bestInstructionSet(''), 'generic');
  t.equal(bestInstructionSet(flags('avx2')), 'generic');
  t.equal(bestInstructionSet(flags(...avx2)), 'avx2');
  t.equal(bestInstructionSet(flags(...avx512)), 'avx512');
  t.equal(bestInstructionSet(flags(...avx512, 'avx512_bf16')), 'avx512bf16');
});
