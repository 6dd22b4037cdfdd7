/** Hostile uploads are refused with a code, and other requests are not delayed meanwhile. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LightMyRequestResponse } from 'fastify';
import t from 'tap';
import type { Dataset, Problem } from '../../contracts/index.js';
import { modelFolder, TINY_CONFIG, tarOf } from '../../formats/testing/models.js';
import {
  arriving,
  configFile,
  emptyTensors,
  largeTokenizer,
  lists,
  MANY_EXPERTS,
  manyDicts,
  nested,
  withHeader,
} from '../testing/hostile-uploads.js';
import { TAR } from '../testing/model-uploads.js';
import { createSession } from '../testing/sessions.js';
import { smallSpec, startTestStack } from '../testing/stack.js';
import { field } from '../testing/tinker.js';

const MIB = 1024 * 1024;
/** Longest accepted delay of other requests on an idle machine. */
const MAX_DELAY_MS = 50;
const ATTEMPTS = 4;
/** Between the requests that measure the delay: they would otherwise occupy a core. */
const PAUSE_MS = 5;

/** Beginning of a call with rows. */
const PASS_OF = '{"type":"forward","loss":{"type":"cross_entropy"},"rows":[';

/** A pass of Tinker's API with rows that have no field. */
const EMPTY_ROWS = Buffer.concat([field(4, 'cross_entropy'), Buffer.alloc(8 * MIB, Buffer.of(3 * 8 + 2, 0))]);

t.test('hostile uploads', { timeout: 280_000 }, async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const health = `${await stack.listen()}/healthz`;

  const uploadTar = async (...files: [string, Buffer][]) => {
    const body = await tarOf(files);
    return () =>
      stack.request({
        method: 'POST',
        url: '/v1/models?name=x',
        headers: TAR,
        payload: Readable.from(arriving(body)),
      });
  };
  const uploadLines = (body: Buffer) => () =>
    stack.request({
      method: 'POST',
      url: '/v1/datasets?name=x&format=jsonl',
      headers: { 'content-type': 'application/jsonl' },
      payload: Readable.from(arriving(body)),
    });
  const json = { 'content-type': 'application/json' };
  const { id: dataset } = await stack.upload('to be or not to be, that is the question. '.repeat(20));
  const line = { messages: [{ role: 'assistant', content: 'to be or not to be '.repeat(50) }] };
  const { id: chats } = (await uploadLines(Buffer.from(`${JSON.stringify(line)}\n`))()).json<Dataset>();
  const dryRun = (payload: string | Buffer) => () =>
    stack.request({ method: 'POST', url: '/v1/jobs?dry_run=true', headers: json, payload });
  const spec = smallSpec(dataset);
  const { id: session } = await createSession(stack);
  const putCall = (payload: string) => () =>
    stack.request({ method: 'PUT', url: `/v1/jobs/${session}/calls/1`, headers: json, payload });

  const sendTinker = (path: string, type: string, payload: Buffer) => () =>
    stack.request({
      method: 'POST',
      url: `/tinker/api/v1/${path}`,
      headers: { 'content-type': type },
      payload: Readable.from(arriving(payload)),
    });

  /** Longest delay of the event loop and of an answer of /healthz during `work`, in ms. */
  const waitsDuring = async (work: () => Promise<LightMyRequestResponse>) => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    let ended = false;
    const done = work().finally(() => {
      ended = true;
    });
    delay.enable();
    let answerMs = 0;
    while (!ended) {
      const begun = performance.now();
      await (await fetch(health)).text();
      answerMs = Math.max(answerMs, performance.now() - begun);
      await sleep(PAUSE_MS);
    }
    delay.disable();
    return { reply: await done, waits: Math.max(answerMs, delay.max / 1e6) };
  };
  const ignored = await uploadTar(['notes.bin', Buffer.alloc(8 * MIB)]);
  /** The same delay during an upload that is not parsed. */
  const ordinary = async () => (await waitsDuring(ignored)).waits;

  const name = 'model.safetensors';
  const [folderConfig] = modelFolder();
  const hostile: [string, () => Promise<LightMyRequestResponse>, string, RegExp][] = [
    [
      'a tokenizer of brackets in brackets',
      await uploadTar(['tokenizer.json', nested(12 * MIB)]),
      'tokenizer_invalid',
      /nested deeper than 64 levels/,
    ],
    [
      'a tokenizer of lists',
      await uploadTar(['tokenizer.json', lists(12 * MIB)]),
      'tokenizer_invalid',
      /values/,
    ],
    [
      'a large tokenizer',
      await uploadTar(['tokenizer.json', largeTokenizer(200_000)]),
      'model_file_missing',
      /config.json/,
    ],
    [
      'a header of 100 MB',
      await uploadTar([name, withHeader(Buffer.alloc(100_000_000, '{"a":'))]),
      'safetensors_invalid',
      /declares a header of 100000000 bytes; the maximum is/,
    ],
    [
      'a header of brackets in brackets',
      await uploadTar([name, withHeader(Buffer.concat([Buffer.from('{"a":'), nested(12 * MIB)]))]),
      'safetensors_invalid',
      /nested deeper/,
    ],
    [
      '200,000 empty tensors',
      await uploadTar([name, emptyTensors(200_000, 4 * MIB)], folderConfig!),
      'model_tensor_unexpected',
      /x0/,
    ],
    [
      'a configuration of 200,000 parameters',
      await uploadTar(configFile(MANY_EXPERTS)),
      'model_file_missing',
      /model.safetensors/,
    ],
    [
      'a pickle of dicts',
      await uploadTar(['zero/w/fp32.pt', await manyDicts(8 * MIB)]),
      'torch_file_unsafe',
      /too many values/,
    ],
    [
      'lines of lists',
      uploadLines(Buffer.from(`{"a":[${'[],'.repeat(MIB)}\n`.repeat(2))),
      'dataset_line_invalid',
      /^line 1: it has more/,
    ],
    [
      'rows of JSON lists',
      uploadLines(Buffer.from(`messages\n${`"${'[],'.repeat(MIB)}"\n`.repeat(2)}`)),
      'dataset_line_invalid',
      /^line 2: column "messages": it is not JSON/,
    ],
    [
      'rows of commas',
      uploadLines(Buffer.from(`text\n${','.repeat(4 * MIB)}`)),
      'dataset_line_invalid',
      /cells/,
    ],
    ['blank rows', uploadLines(Buffer.from(`text\n${'\n'.repeat(8 * MIB)}`)), 'dataset_empty', /./],
    [
      'an array of lists',
      uploadLines(lists(8 * MIB)),
      'dataset_line_invalid',
      /^item 1: it is JSON, but not/,
    ],
    ['a call of lists', putCall(`${PASS_OF}${'[],'.repeat(5 * MIB)}[]]}`), 'validation_failed', /rows/],
    [
      'a call of numbers that are no tokens',
      putCall(`${PASS_OF}{"tokens":[${'-1,'.repeat(5 * MIB)}1],"targets":[1]}]}`),
      'validation_failed',
      /tokens/,
    ],
    ['blank lines', uploadLines(Buffer.alloc(8 * MIB, '\n')), 'dataset_empty', /./],
    ['a body of lists', dryRun(lists(MIB - 10)), 'malformed_json', /more than 5000 values/],
    [
      'a document of unknown fields',
      dryRun(
        JSON.stringify({
          ...spec,
          ...Object.fromEntries(Array.from({ length: 4900 }, (_, i) => [`field_${i}`, i])),
        }),
      ),
      'validation_failed',
      /fields are invalid/,
    ],
    [
      'a configuration of unknown fields',
      dryRun(
        JSON.stringify({
          ...spec,
          model: {
            config: {
              ...TINY_CONFIG,
              ...Object.fromEntries(Array.from({ length: 4900 }, (_, i) => [`num_f_${i}`, i])),
            },
          },
        }),
      ),
      'validation_failed',
      /fields are invalid/,
    ],
    [
      'a chat template of blanks',
      dryRun(
        JSON.stringify({ ...spec, data: { dataset: chats, chat_template: `${' \n'.repeat(15_000)}{{` } }),
      ),
      'validation_failed',
      /data\/chat_template/,
    ],
  ];
  const experts = { ...spec, model: { config: MANY_EXPERTS } };
  const manyRanks = {
    train: { ...spec.train, global_batch_size: 64, micro_batch_size: 1 },
    resources: { ranks: { min: 1, max: 64 } },
  };
  const estimate = (payload: object) => () =>
    stack.request({
      method: 'POST',
      url: '/v1/estimate',
      headers: json,
      payload: JSON.stringify(payload),
    });
  /** Accepted documents that are slow because of their number of parameters and ranks. */
  const large: [string, () => Promise<LightMyRequestResponse>][] = [
    ['65,536 experts on up to 64 ranks', dryRun(JSON.stringify({ ...experts, ...manyRanks }))],
    [
      'the memory of 64 large worlds',
      estimate({
        spec: {
          ...experts,
          train: { ...spec.train, global_batch_size: 4096, micro_batch_size: 1 },
          zero: { expert_parallel_size: 256 },
          resources: { ranks: { min: 256, max: 4096 } },
        },
        world_sizes: Array(64).fill(4096),
      }),
    ],
  ];
  /** Requests of Tinker's API, whose errors have another form. */
  const translated: [string, () => Promise<LightMyRequestResponse>, string, RegExp][] = [
    [
      'a pass of empty rows',
      sendTinker('forward_backward', 'application/x-protobuf', EMPTY_ROWS),
      'validation_failed',
      /more than 100000 fields/,
    ],
    [
      'a pass of nothing',
      sendTinker('forward_backward', 'application/x-protobuf', Buffer.alloc(15 * MIB, 255)),
      'validation_failed',
      /is not a ForwardBackwardRequest/,
    ],
    [
      'a sample of lists',
      sendTinker('asample', 'application/json', lists(MIB - 10)),
      'malformed_json',
      /more than 100000 values/,
    ],
  ];
  const cases = [
    ...hostile.map(([title, work, code, detail]) => ({ what: title, work, expected: { code, detail } })),
    ...translated.map(([title, work, code, message]) => ({
      what: title,
      work,
      expected: { error: { code, message } },
    })),
    ...large.map(([title, work]) => ({ what: title, work, expected: {} })),
  ];
  // Opens a new connection: a connection that was idle during the uploads may be closed while it is reused.
  await ordinary();
  for (const { what: title, work, expected } of cases)
    t.test(title, { timeout: 120_000 }, async (t) => {
      const tried: string[] = [];
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const begun = performance.now();
        const { reply, waits } = await waitsDuring(work);
        const took = performance.now() - begun;
        t.match(reply.json<Problem>(), expected);
        t.equal(reply.statusCode === 200, Object.keys(expected).length === 0);
        if (waits < MAX_DELAY_MS) return;
        const usual = await ordinary();
        tried.push(`${waits.toFixed(0)} ms, otherwise ${usual.toFixed(0)} ms`);
        // Busy threads take CPU time on a machine with few cores; work on the main thread takes all of it.
        if (waits < Math.max(3 * usual, took / 4)) return;
      }
      t.fail(`others waited ${tried.join('; ')}`);
    });
});
