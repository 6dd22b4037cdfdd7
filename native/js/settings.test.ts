// Every field of a configuration reaches the core: another value gives another training, or is refused.
import t from 'tap';
import { Trainer, type TrainerConfig } from './index.js';
import { CASES, FIELDS_OF_TYPES, OTHERS, tiny, tokens } from './testing/settings-cases.js';

t.teardown(() => tokens.remove());

/** A configuration with other values at some paths. */
function changed(config: TrainerConfig, values: Record<string, unknown>): TrainerConfig {
  const copy = structuredClone(config);
  for (const [path, value] of Object.entries(values)) {
    const names = path.split('.');
    const last = names.pop() as string;
    const parent = names.reduce((object, name) => object[name] as Fields, copy as unknown as Fields);
    parent[last] = value;
  }
  return copy;
}
interface Fields {
  [name: string]: unknown;
}

/**
 * The results of all steps and the digest of a training, as text; instead of the rest the code of an error that ends
 * it.
 */
async function seen(config: TrainerConfig): Promise<string> {
  const steps: unknown[] = [];
  let trainer: Trainer | undefined;
  try {
    trainer = Trainer.create(config, () => {});
    await trainer.connect();
    await trainer.initialize();
    await trainer.computeReference();
    for (let step = 0; step < config.steps; step++) {
      const { loss, lr, loss_scale, grad_norm } = await trainer.step(0);
      steps.push(loss, lr, loss_scale, grad_norm);
    }
    steps.push(trainer.digestPart());
  } catch (error) {
    steps.push((error as { code: string }).code);
  }
  trainer?.close();
  return JSON.stringify(steps);
}

t.test('another value of a field is another training', async (t) => {
  for (const [settings, values] of CASES) {
    const config = changed(tiny, settings);
    const before = await seen(config);
    t.match(before, /[0-9a-f]{32}"\]$/, `trains: ${JSON.stringify(settings)}`);
    for (const [path, value] of Object.entries(values)) {
      t.not(await seen(changed(config, { [path]: value })), before, path);
    }
  }
});

t.test('every field is there', async (t) => {
  const known = new Set([...CASES.flatMap(([, values]) => Object.keys(values)), ...OTHERS]);
  const paths = (object: object, prefix = ''): string[] =>
    Object.entries(object).flatMap(([name, value]) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? paths(value, `${prefix}${name}.`)
        : [`${prefix}${name}`],
    );
  t.same(
    [...paths(tiny), ...FIELDS_OF_TYPES].filter((path) => !known.has(path)),
    [],
  );
});
