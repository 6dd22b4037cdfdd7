import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { Manifest } from '../../platform/checkpoint/manifest.js';
import { architectureOf, modelParams, trainedArchitecture } from '../../spec/index.js';
import type { AdapterFactors, NativeCore } from '../native/adapter.js';
import type { OpenCheckpoint } from './open-checkpoint.js';

type Param = Manifest['params'][number];

/** Weights of a model, in which adapters are merged. */
export class MergedWeights {
  /** The model's own parameters. */
  readonly params: readonly Param[];
  private readonly adapters: ReadonlyMap<string, Param>;

  constructor(
    private readonly checkpoint: OpenCheckpoint,
    private readonly core: Pick<NativeCore, 'mergeAdapter'>,
    private readonly spec: ResolvedJobSpec,
  ) {
    const num_base = modelParams(architectureOf(spec.model.config)).length;
    const { params } = checkpoint.manifest;
    this.params = params.slice(0, num_base);
    this.adapters = new Map(params.slice(num_base).map((param) => [param.name, param]));
  }

  /**
   * Reads a parameter in pieces, in fp32.
   * @throws ZerofleetError `shard_corrupt`, `base_damaged`; errors of the object store
   */
  async *read(param: Param): AsyncGenerator<Uint8Array> {
    const adapter = await this.adapterOf(param);
    let begin = 0;
    for await (const piece of this.checkpoint.read('master', param.name, param.numel)) {
      yield adapter === null ? piece : this.core.mergeAdapter(adapter, begin, piece);
      begin += piece.length / Float32Array.BYTES_PER_ELEMENT;
    }
  }

  private async adapterOf({ name }: Param): Promise<AdapterFactors | null> {
    const module = name.replace(/\.weight$/, '');
    const down = this.adapters.get(`${module}.lora_A.weight`);
    const up = this.adapters.get(`${module}.lora_B.weight`);
    if (down === undefined || up === undefined) return null;
    const { naming, adapter } = trainedArchitecture(this.spec);
    const [rank = 0, columns = 0] = down.shape;
    return {
      down: await this.whole(down),
      up: await this.whole(up),
      rank,
      in: columns,
      out: up.shape[0] ?? 0,
      scale: adapter?.scale ?? 1,
      in_first: naming === 'gpt2',
    };
  }

  private async whole({ name, numel }: Param): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.checkpoint.read('master', name, numel)) pieces.push(piece);
    return Buffer.concat(pieces);
  }
}
