import type { ResolvedJobSpec } from '../../../contracts/index.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import {
  architectureOf,
  modelParams,
  paramNamesOf,
  trainedArchitecture,
} from '../../../job-document/index.js';
import type { AdapterFactors, NativeCore } from '../../shared/native/adapter.js';
import type { OpenCheckpoint } from './open-checkpoint.js';

type Param = Manifest['params'][number];

/** Weights of a model, in which adapters are merged. */
export class MergedWeights {
  /** The model's own parameters. */
  readonly params: readonly Param[];
  private readonly adapters: ReadonlyMap<string, Param>;

  constructor(
    private readonly checkpoint: OpenCheckpoint,
    private readonly core: Pick<NativeCore, 'mergeAdapter' | 'addOutputSquares'>,
    private readonly spec: ResolvedJobSpec,
  ) {
    const numBase = modelParams(architectureOf(spec.model.config)).length;
    const { params } = checkpoint.manifest;
    this.params = params.slice(0, numBase);
    this.adapters = new Map(params.slice(numBase).map((param) => [param.name, param]));
  }

  /**
   * Reads a parameter in pieces, in fp32.
   * @throws ZerofleetError `shard_corrupt`, `base_damaged`; errors of the object store
   */
  async *read(param: Param): AsyncGenerator<Uint8Array> {
    const adapter = await this.adapterOf(param);
    for await (const { begin, piece } of this.pieces(param))
      yield adapter === null ? piece : this.core.mergeAdapter(adapter, begin, piece);
  }

  private async *pieces({ name, numel }: Param): AsyncGenerator<{ begin: number; piece: Uint8Array }> {
    let begin = 0;
    for await (const piece of this.checkpoint.readWeights(name, numel)) {
      yield { begin, piece };
      begin += piece.length / Float32Array.BYTES_PER_ELEMENT;
    }
  }

  private async adapterOf(param: Param): Promise<AdapterFactors | null> {
    const module = param.name.replace(/\.weight$/, '');
    const down = this.adapters.get(`${module}.lora_A.weight`);
    const up = this.adapters.get(`${module}.lora_B.weight`);
    if (down === undefined || up === undefined) return null;
    const architecture = trainedArchitecture(this.spec);
    const [rank = 0, columns = 0] = down.shape;
    const factors = {
      down: await this.whole(down),
      up: await this.whole(up),
      rank,
      in: columns,
      out: up.shape[0] ?? 0,
      scale: architecture.adapter?.scale ?? 1,
      in_first: paramNamesOf(architecture).in_first,
      output_factors: null,
    };
    const magnitude = this.adapters.get(`${module}.lora_magnitude_vector.weight`);
    return magnitude === undefined
      ? factors
      : { ...factors, output_factors: await this.outputFactors(param, factors, magnitude) };
  }

  /**
   * Returns the magnitude of each output divided by the norm of its weights; 0 where the norm is 0. Reads the matrix
   * once more.
   */
  private async outputFactors(
    param: Param,
    factors: AdapterFactors,
    magnitude: Param,
  ): Promise<Float64Array> {
    const squares = new Float64Array(factors.out);
    for await (const { begin, piece } of this.pieces(param))
      this.core.addOutputSquares(factors, begin, piece, squares);
    const magnitudes = await this.whole(magnitude);
    const view = new DataView(magnitudes.buffer, magnitudes.byteOffset);
    return squares.map((sum, output) => (sum === 0 ? 0 : view.getFloat32(4 * output, true) / Math.sqrt(sum)));
  }

  private async whole({ name, numel }: Param): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.checkpoint.readWeights(name, numel)) pieces.push(piece);
    return Buffer.concat(pieces);
  }
}
