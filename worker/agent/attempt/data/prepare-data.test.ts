import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { storeModel, TINY_TOKENIZER, testModel } from '../../../../formats/testing/models.js';
import { dataWarnings } from '../../../../job-document/index.js';
import { Fleet } from '../../../testing/fleet.js';

const MODEL = 'mdl_01J00000000000000000000000';
const TEMPLATE = '{% for m in messages %}{{ m.content }}{% endfor %}';

/** Letters of TINY_TOKENIZER. */
const CHAT = {
  messages: [
    { role: 'user', content: 'ab' },
    { role: 'assistant', content: 'abcdefgh' },
  ],
};

function jsonl(count: number) {
  const fields = { format: 'jsonl', num_documents: count, num_chats: count, num_tokens: null } as const;
  return [Buffer.from(`${JSON.stringify(CHAT)}\n`.repeat(count)), fields] as const;
}

t.test('chat data', async (t) => {
  const fleet = await Fleet.start();
  t.teardown(() => fleet.close());
  await fleet.agent();
  await fleet.store.putModel(testModel(MODEL));
  const files = new Map([
    ['tokenizer.json', Buffer.from(JSON.stringify(TINY_TOKENIZER))],
    ['tokenizer_config.json', Buffer.from(JSON.stringify({ eos_token: '</s>' }))],
  ]);
  await storeModel(fleet.objects, MODEL, files);
  const data = { tokenizer: MODEL, chat_template: TEMPLATE, packing: 'whole' } as const;
  const eventData = async (id: string, type: string) =>
    (await fleet.events(id)).filter((event) => event.type === type).map((event) => event.data);

  await t.test('is prepared with the tokenizer and summarized in an event', async (t) => {
    const dataset = await fleet.addDataset(...jsonl(50));
    const id = await fleet.submit({ steps: 2, dataset, data });
    const { export: exported } = await fleet.untilState(id, 'succeeded');
    const prepared = await eventData(id, 'data.prepared');
    t.match(prepared, [{ tokens_digest: /^sha256:[0-9a-f]{64}$/ }]);
    const flaws = { no_stop_token: { texts: 50, first_line: 1 } };
    t.same(prepared, [
      {
        documents: 50,
        tokens: 500,
        targets: 400,
        max_token: 7,
        long_documents: 0,
        flaws,
        sequences: 50,
        useful_tokens: 500,
        padding: 0.375,
        validation_sequences: 0,
        without_targets: 0,
        evaluation: [],
        tokens_digest: prepared[0]?.tokens_digest,
        warnings: dataWarnings({ documents: 50, flaws }, 64),
      },
    ]);
    t.same(
      exported?.files.map(({ name }) => name),
      [
        'config.json',
        'model.safetensors',
        'chat_template.jinja',
        'generation_config.json',
        'tokenizer.json',
        'tokenizer_config.json',
      ],
    );
    t.equal(String(await fleet.objects.get(`${exported?.prefix}/chat_template.jinja`)), TEMPLATE);
  });

  await t.test('that is invalid fails the job at once', async (t) => {
    const [lines, fields] = jsonl(50);
    const bad = Buffer.concat([lines, Buffer.from('{"text": 3}\n')]);
    const dataset = await fleet.addDataset(bad, { ...fields, num_documents: 51 });
    const id = await fleet.submit({ steps: 2, dataset, data });
    const { failure } = await fleet.untilState(id, 'failed');
    t.match(failure, {
      code: 'dataset_line_invalid',
      category: 'data',
      message: /^dataset ds_\w+: line 51: /,
    });
    t.equal((await eventData(id, 'attempt.error')).length, 1);
  });

  await t.test('is evaluated on, with the tokens that it would be trained on', async (t) => {
    const [dataset, named] = [await fleet.addDataset(...jsonl(50)), await fleet.addDataset(...jsonl(20))];
    const datasets = [
      { name: 'few', dataset: named },
      { name: 'training', dataset },
    ];
    const train = { evaluation: { every_steps: 2, datasets } };
    const id = await fleet.submit({ steps: 4, dataset, data, train });
    await fleet.untilState(id, 'succeeded');
    const [prepared] = await eventData(id, 'data.prepared');
    t.match(prepared, {
      sequences: 50,
      evaluation: [
        { name: 'few', dataset: named, documents: 20, sequences: 20 },
        { name: 'training', dataset, documents: 50, sequences: 50 },
      ],
    });
    const plain = await fleet.submit({ steps: 4, dataset, data });
    await fleet.untilState(plain, 'succeeded');
    t.not((await eventData(plain, 'data.prepared'))[0]?.tokens_digest, prepared?.tokens_digest);
    const finished = (await eventData(id, 'evaluation.finished')).map(({ step, name }) => `${step} ${name}`);
    t.same(finished.sort(), ['2 few', '2 training', '4 few', '4 training']);

    const empty = await fleet.addDataset(Buffer.from('{"text": ""}\n'), { ...jsonl(1)[1], num_chats: 0 });
    const refused = { evaluation: { datasets: [{ name: 'empty', dataset: empty }] } };
    const failed = await fleet.submit({ steps: 4, dataset, data, train: refused });
    const { failure } = await fleet.untilState(failed, 'failed');
    t.match(failure, { category: 'data', message: new RegExp(`^dataset ${empty}: `) });
  });

  await t.test('stops being prepared when the job is cancelled', async (t) => {
    const dataset = await fleet.addDataset(...jsonl(300_000));
    const id = await fleet.submit({ steps: 2, dataset, data });
    let progress: Record<string, unknown> | undefined;
    for (; !progress; [progress] = await eventData(id, 'data.preparing')) await delay(20);
    t.ok(Number(progress.done_bytes) < Number(progress.total_bytes));
    await fleet.store.requestCancel(id);
    await fleet.untilState(id, 'cancelled');
    t.same(await eventData(id, 'data.prepared'), []);
    const names = await readdir(join(fleet.dir, 'data', 'cache', 'tokens'));
    t.same(
      names.filter((name) => name.includes('.tmp')),
      [],
      'no temporary file is left',
    );
  });
});
