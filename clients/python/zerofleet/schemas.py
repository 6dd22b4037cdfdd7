"""Types of the bodies of requests and answers. Generated from openapi.yaml by `npm run generate`."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union


class StateChange(TypedDict):
    """A state change in a job's history."""
    state: JobState
    reason: Optional[str]
    """Reason for the change."""
    at: Time


class _ResolvedGpt2ConfigRequired(TypedDict):
    model_type: Literal["gpt2"]
    """The model family."""
    vocab_size: int
    """Size of the vocabulary."""
    n_positions: int
    """Maximum sequence length; every position has an embedding."""
    n_embd: int
    """Width of the residual stream."""
    n_layer: int
    """Number of transformer layers."""
    n_head: int
    """Number of heads."""
    n_inner: int
    """Width inside the MLP; even."""
    activation_function: Literal["gelu", "gelu_new"]
    """The activation of the MLP. `gelu` is exact, `gelu_new` is its approximation by tanh."""
    resid_pdrop: float
    """Dropout of a block's addition to the residual stream in training."""
    embd_pdrop: float
    """Dropout of the embeddings in training."""
    attn_pdrop: float
    """Dropout of the attention probabilities in training."""
    layer_norm_epsilon: float
    """Epsilon of LayerNorm."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""



class ResolvedGpt2Config(_ResolvedGpt2ConfigRequired, total=False):
    """GPT-2, with LayerNorm, learned positions, biases and GELU."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _RopeScalingRequired(TypedDict):
    rope_type: Literal["linear", "llama3", "yarn", "longrope"]
    """Kind of scaling."""
    factor: float
    """Ratio of the sequence length to that of the original training."""



class RopeScaling(_RopeScalingRequired, total=False):
    """Scaling of rotary frequencies. `linear`: all are divided by `factor`. `llama3`, `yarn`: low
    frequencies are divided, high ones are not, and those between in part. `longrope`: each is
    divided by a factor of its own."""
    original_max_position_embeddings: int
    """`llama3`, `yarn`, `longrope`: the longest sequence of the original training."""
    low_freq_factor: float
    """`llama3`: limit at which the scaling of frequencies begins."""
    high_freq_factor: float
    """`llama3`: limit at which the scaling of frequencies ends."""
    beta_fast: float
    """`yarn`: number of rotations above which a dimension is not scaled."""
    beta_slow: float
    """`yarn`: number of rotations below which a dimension is scaled fully."""
    attention_factor: float
    """`yarn`, `longrope`: factor of cosines and sines; by default computed from `factor`."""
    mscale: float
    """`yarn`: contributes to the default of `attention_factor`."""
    mscale_all_dim: float
    """`yarn`: contributes to the default of `attention_factor`."""
    truncate: bool
    """`yarn`: rounds the bounds between dimensions to whole numbers."""
    short_factor: List[float]
    """`longrope`: divisors of the frequencies for sequences up to the original length."""
    long_factor: List[float]
    """`longrope`: divisors of the frequencies for longer sequences."""


class _ResolvedLlamaConfigRequired(TypedDict):
    model_type: Literal["llama"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""
    mlp_bias: bool
    """The projections of the MLP have biases."""



class ResolvedLlamaConfig(_ResolvedLlamaConfigRequired, total=False):
    """Llama 2 and 3."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedMistralConfigRequired(TypedDict):
    model_type: Literal["mistral"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""



class ResolvedMistralConfig(_ResolvedMistralConfigRequired, total=False):
    """Mistral."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedQwen2ConfigRequired(TypedDict):
    model_type: Literal["qwen2"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    use_sliding_window: bool
    """Layers have the sliding window."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""
    max_window_layers: int
    """Index of the first layer with a sliding window by default."""
    layer_types: List[Literal["full_attention", "sliding_attention"]]
    """Kind of attention of each layer."""



class ResolvedQwen2Config(_ResolvedQwen2ConfigRequired, total=False):
    """Qwen2 and Qwen2.5: queries, keys and values have biases."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedQwen3ConfigRequired(TypedDict):
    model_type: Literal["qwen3"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""
    use_sliding_window: bool
    """Layers have the sliding window."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""
    max_window_layers: int
    """Index of the first layer with a sliding window by default."""
    layer_types: List[Literal["full_attention", "sliding_attention"]]
    """Kind of attention of each layer."""



class ResolvedQwen3Config(_ResolvedQwen3ConfigRequired, total=False):
    """Qwen3: query and key heads are normalized."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedMixtralConfigRequired(TypedDict):
    model_type: Literal["mixtral"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""
    num_local_experts: int
    """Number of experts."""
    num_experts_per_tok: int
    """Number of experts to which each token is sent."""
    output_router_logits: bool
    """The auxiliary loss is part of the loss."""
    router_aux_loss_coef: float
    """Factor of the auxiliary loss."""



class ResolvedMixtralConfig(_ResolvedMixtralConfigRequired, total=False):
    """Mixtral: a mixture of experts."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedSmollm3ConfigRequired(TypedDict):
    model_type: Literal["smollm3"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""
    mlp_bias: bool
    """The projections of the MLP have biases."""
    no_rope_layer_interval: int
    """Without `no_rope_layers`: every such layer has no positions."""
    no_rope_layers: List[Literal[0, 1]]
    """For each layer 1 if it has rotary positions, 0 if it has none."""
    use_sliding_window: bool
    """Layers have the sliding window."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""
    layer_types: List[Literal["full_attention", "sliding_attention"]]
    """Kind of attention of each layer."""



class ResolvedSmollm3Config(_ResolvedSmollm3ConfigRequired, total=False):
    """SmolLM3: some layers have no positions."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedGraniteConfigRequired(TypedDict):
    model_type: Literal["granite"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""
    mlp_bias: bool
    """The projections of the MLP have biases."""
    embedding_multiplier: float
    """Factor of the embeddings of tokens."""
    attention_multiplier: float
    """Factor of attention's scores."""
    residual_multiplier: float
    """Factor of the outputs of attention and MLP."""
    logits_scaling: float
    """Divisor of the logits."""



class ResolvedGraniteConfig(_ResolvedGraniteConfigRequired, total=False):
    """Granite 3, dense."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedOlmo2ConfigRequired(TypedDict):
    model_type: Literal["olmo2"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""



class ResolvedOlmo2Config(_ResolvedOlmo2ConfigRequired, total=False):
    """OLMo 2: outputs of attention and MLP are normalized, and queries and keys over all heads."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedOlmo3ConfigRequired(TypedDict):
    model_type: Literal["olmo3"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""
    sliding_window: int
    """Number of tokens that a query attends to, including itself."""
    layer_types: List[Literal["full_attention", "sliding_attention"]]
    """Kind of attention of each layer."""



class ResolvedOlmo3Config(_ResolvedOlmo3ConfigRequired, total=False):
    """OLMo 3: OLMo 2 with a sliding window in some layers. `rope_scaling` applies to the other
    layers."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedQwen3MoeConfigRequired(TypedDict):
    model_type: Literal["qwen3_moe"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""
    use_sliding_window: bool
    """Layers have the sliding window."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""
    moe_intermediate_size: int
    """Width inside an expert; even."""
    num_experts: int
    """Number of experts."""
    norm_topk_prob: bool
    """The probabilities of the chosen experts are divided by their sum."""
    num_experts_per_tok: int
    """Number of experts to which each token is sent."""
    output_router_logits: bool
    """The auxiliary loss is part of the loss."""
    router_aux_loss_coef: float
    """Factor of the auxiliary loss."""



class ResolvedQwen3MoeConfig(_ResolvedQwen3MoeConfigRequired, total=False):
    """Qwen3-MoE: a Qwen3 with a mixture of experts in every layer. `intermediate_size` has no
    meaning."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedGemma3ConfigRequired(TypedDict):
    model_type: Literal["gemma3_text"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    rope_local_base_freq: float
    """Base of the rotary frequencies of layers with the window."""
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    attention_bias: bool
    """The projections of attention have biases."""
    hidden_activation: Literal["gelu_pytorch_tanh"]
    """The activation of the gate in the MLP."""
    query_pre_attn_scalar: float
    """Attention's scores are divided by its square root."""
    sliding_window: int
    """Number of tokens that a query attends to, including itself."""
    layer_types: List[Literal["full_attention", "sliding_attention"]]
    """Kind of attention of each layer."""



class ResolvedGemma3Config(_ResolvedGemma3ConfigRequired, total=False):
    """Gemma 3, text. `rope_theta` and `rope_scaling` are of the layers without a window."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedGemma2ConfigRequired(TypedDict):
    model_type: Literal["gemma2"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    attention_bias: bool
    """The projections of attention have biases."""
    hidden_activation: Literal["gelu_pytorch_tanh"]
    """The activation of the gate in the MLP."""
    query_pre_attn_scalar: float
    """Attention's scores are divided by its square root."""
    sliding_window: int
    """Number of tokens that a query attends to, including itself."""
    layer_types: List[Literal["full_attention", "sliding_attention"]]
    """Kind of attention of each layer."""
    attn_logit_softcapping: Optional[float]
    """Soft cap of attention's scores; null: none."""
    final_logit_softcapping: Optional[float]
    """Soft cap of the logits; null: none."""



class ResolvedGemma2Config(_ResolvedGemma2ConfigRequired, total=False):
    """Gemma 2, with soft caps of attention's scores and of the logits."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _LongropeScalingRequired(TypedDict):
    type: Literal["longrope"]
    """Kind of scaling."""
    short_factor: List[float]
    """Divisors of the frequencies for sequences up to the original length."""
    long_factor: List[float]
    """Divisors of the frequencies for longer sequences."""



class LongropeScaling(_LongropeScalingRequired, total=False):
    """Scaling of rotary frequencies in the spelling of `phi3`. Each frequency is divided by a
    factor of its own."""
    factor: float
    """Ratio of the sequence length to the original one; by default of `max_position_embeddings`."""
    attention_factor: float
    """Factor of cosines and sines; by default computed from `factor`."""


class _ResolvedPhi3ConfigRequired(TypedDict):
    model_type: Literal["phi3"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[LongropeScaling]
    partial_rotary_factor: float
    """Share of the elements of a head that have rotary positions, the first ones."""
    original_max_position_embeddings: int
    """The longest sequence of the original training, for `rope_scaling`."""
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    resid_pdrop: float
    """Dropout of a block's addition to the residual stream in training."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""



class ResolvedPhi3Config(_ResolvedPhi3ConfigRequired, total=False):
    """Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: fused projections, rotary positions in part of a head."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedGlm4ConfigRequired(TypedDict):
    model_type: Literal["glm4"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    partial_rotary_factor: float
    """Share of the elements of a head that have rotary positions, the first ones."""
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""



class ResolvedGlm4Config(_ResolvedGlm4ConfigRequired, total=False):
    """GLM-4-0414, dense: norms before and behind attention and MLP, rotary positions in part of a
    head."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedGptNeoxConfigRequired(TypedDict):
    model_type: Literal["gpt_neox"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    hidden_act: Literal["gelu", "gelu_new"]
    """The activation of the MLP. `gelu` is exact, `gelu_new` is its approximation by tanh."""
    use_parallel_residual: bool
    """The MLP reads the layer's input, not the stream after attention."""
    attention_bias: bool
    """The projections of attention have biases."""
    rotary_emb_base: float
    """Base of the rotary frequencies."""
    rotary_pct: float
    """Share of the elements of a head that have rotary positions, the first ones."""
    rope_scaling: Optional[RopeScaling]
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_dropout: float
    """Dropout of the embeddings and of a block's addition to the residual stream."""
    layer_norm_eps: float
    """Epsilon of LayerNorm."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""



class ResolvedGptNeoxConfig(_ResolvedGptNeoxConfigRequired, total=False):
    """GPT-NeoX and Pythia: attention and MLP read the same stream, rotary positions in part of a
    head."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedGlmConfigRequired(TypedDict):
    model_type: Literal["glm"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    partial_rotary_factor: float
    """Share of the elements of a head that have rotary positions, the first ones."""
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    attention_bias: bool
    """The projections of attention have biases."""



class ResolvedGlmConfig(_ResolvedGlmConfigRequired, total=False):
    """GLM-4 of 2024, dense: a fused gate, rotary positions in part of a head."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class _ResolvedQwen2MoeConfigRequired(TypedDict):
    model_type: Literal["qwen2_moe"]
    """The model family."""
    hidden_size: int
    """Width of the residual stream."""
    intermediate_size: int
    """Width inside the MLP; even."""
    num_hidden_layers: int
    """Number of transformer layers."""
    num_attention_heads: int
    """Number of query heads."""
    num_key_value_heads: int
    """Number of key and value heads; it divides `num_attention_heads`."""
    head_dim: int
    """Width of one head; even."""
    vocab_size: int
    """Size of the vocabulary."""
    max_position_embeddings: int
    """Maximum sequence length of the model."""
    rms_norm_eps: float
    """Epsilon of RMSNorm."""
    rope_theta: float
    """Base of the rotary frequencies."""
    rope_scaling: Optional[RopeScaling]
    tie_word_embeddings: bool
    """Input and output embedding share one matrix."""
    initializer_range: float
    """Standard deviation of the initial weights."""
    attention_dropout: float
    """Dropout of the attention probabilities in training."""
    hidden_act: Literal["silu"]
    """The activation of the MLP."""
    qkv_bias: bool
    """The projections of queries, keys and values have biases."""
    use_sliding_window: bool
    """Layers have the sliding window."""
    sliding_window: Optional[int]
    """Number of tokens that a query attends to, including itself; null: all before it."""
    max_window_layers: int
    """Index of the first layer with a sliding window by default."""
    layer_types: List[Literal["full_attention", "sliding_attention"]]
    """Kind of attention of each layer."""
    moe_intermediate_size: int
    """Width inside an expert; even."""
    num_experts: int
    """Number of experts."""
    norm_topk_prob: bool
    """The probabilities of the chosen experts are divided by their sum."""
    shared_expert_intermediate_size: int
    """Width inside the expert of all tokens; even."""
    num_experts_per_tok: int
    """Number of experts to which each token is sent."""
    output_router_logits: bool
    """The auxiliary loss is part of the loss."""
    router_aux_loss_coef: float
    """Factor of the auxiliary loss."""



class ResolvedQwen2MoeConfig(_ResolvedQwen2MoeConfigRequired, total=False):
    """Qwen1.5-MoE and Qwen2-MoE: a mixture of experts in every layer, and an expert for all tokens
    besides. `intermediate_size` has no meaning."""
    bos_token_id: TokenIds
    eos_token_id: TokenIds
    pad_token_id: TokenIds


class ResolvedInitCheckpoint(TypedDict):
    """The initial checkpoint and its location."""
    checkpoint: CheckpointId
    job: JobId
    prefix: str
    """Prefix of the checkpoint's objects in the object store."""
    restore: Restore


class _ResolvedInitModelRequired(TypedDict):
    model: ModelId



class ResolvedInitModel(_ResolvedInitModelRequired, total=False):
    """The initial model."""
    restore: Literal["full", "weights_16bit"]
    """Restores the uploaded optimizer state as well."""


class ResolvedBase1(TypedDict):
    """Fresh weights of a seed."""
    seed: Seed


class ResolvedBase2(TypedDict):
    """An uploaded model."""
    model: ModelId


class ResolvedBase3(TypedDict):
    """The weights of a checkpoint."""
    checkpoint: CheckpointId
    job: JobId
    prefix: str
    """Prefix of the checkpoint's objects in the object store."""


class _ResolvedModelRequired(TypedDict):
    config: ResolvedModelConfig
    preset: Optional[PresetName]
    init_from: Optional[Union[ResolvedInitCheckpoint, ResolvedInitModel]]



class ResolvedModel(_ResolvedModelRequired, total=False):
    """The model's configuration, its preset, and the source of its initial weights."""
    quantization: Quantization
    base: ResolvedBase


class MixtureEntrySpec(TypedDict, total=False):
    """A dataset of the mixture. Set exactly one of `dataset` and `uri`."""
    dataset: DatasetId
    uri: SourceUri
    """An object or file, as `data.uri`. The resolved document names the dataset."""
    format: DatasetFormat
    """Format of the object that `uri` names; `text` by default."""
    weight: float
    """Share of the sequences (of preferences: units) that come from the dataset, relative to the
    sum of all weights; at most three decimals. All datasets have a weight, or none; the default is
    the number of sequences of the dataset."""


class ChatSpec(TypedDict, total=False):
    """What is learned of chats. Preferences learn whole completions."""
    turns: Literal["together", "each"]
    """`together`: a chat is one text, rendered once, of which every turn of the assistant is
    learned. `each`: every turn of the assistant is a text of its own, with the messages before it
    as an answer to them would read them."""
    reasoning: Literal["learn", "mask"]
    """`mask` leaves the text of reasoning out of the loss: the fields `reasoning_content`,
    `reasoning` and `thinking`, and in `content` what is between `<think>` and `</think>`."""


class DataSpec(TypedDict, total=False):
    """Training data. Set exactly one of `dataset`, `uri` and `mixture`. The data of a session
    (`train.session`) has none of them."""
    dataset: DatasetId
    mixture: List[MixtureEntrySpec]
    """Several datasets of one format that are trained on together. Without weights every dataset is
    read once in an epoch."""
    uri: SourceUri
    """An object in a bucket that the operator allows, or a file on the Hub; the key needs the scope
    `datasets`. The server copies it, and the resolved document names the dataset."""
    format: DatasetFormat
    """Format of the object that `uri` names; `text` by default. A dataset has its own format."""
    tokenizer: Optional[str]
    """`bytes` (one token per byte), the id of a model with a `tokenizer.json`, or the URI of a
    `tokenizer.json` in a bucket that the operator allows or on the Hub. A URI needs a key with the
    scope `models`. `null`: the tokenizer of the initial model or of the initial checkpoint's job,
    otherwise `bytes`. A dataset of `format=tokens` has none."""
    chat_template: Optional[str]
    """Jinja template that renders the messages of a chat as text. `null`: the template of the
    initial checkpoint's job or of the tokenizer's model, otherwise ChatML. The resolved document
    has the template, or `null` for a dataset without chats."""
    chat: ChatSpec
    parse_special_tokens: bool
    """`true` reads special tokens such as `<|im_end|>` in texts, messages and prompts as those
    tokens, for texts that a template rendered before the upload. `false` reads them as plain text,
    so that a text cannot end a turn."""
    template_date: Optional[str]
    """Day that `strftime_now` of the template returns, at 00:00 UTC. `null`: the day (UTC) on which
    the job is created, or that of the initial checkpoint's job if the template is the same."""
    packing: Literal["split", "whole", "fit"]
    """`split` concatenates documents and cuts every `sequence_length` tokens. `whole` fills each
    sequence with whole documents in order and padding, and cuts only longer documents. `fit`
    combines whole documents by best fit, for the least padding. The default is `whole` for
    `format=jsonl`, otherwise `split`. Preferences are `whole`, with one completion per sequence."""
    validation_fraction: float
    """Share of the documents, at least one, that `seed` selects for validation. Of preferences it
    is a share of the units, and of a single document a share of its sequences. Of a `mixture` it is
    a share of each dataset."""
    seed: Seed
    """Seed of the order of the samples and of the validation split."""


class ResolvedChat(TypedDict):
    """What is learned of chats, with every field."""
    turns: Literal["together", "each"]
    """`together`: a chat is one text, rendered once, of which every turn of the assistant is
    learned. `each`: every turn of the assistant is a text of its own, with the messages before it
    as an answer to them would read them."""
    reasoning: Literal["learn", "mask"]
    """`mask` leaves the text of reasoning out of the loss: the fields `reasoning_content`,
    `reasoning` and `thinking`, and in `content` what is between `<think>` and `</think>`."""


class _ResolvedMixtureEntryRequired(TypedDict):
    dataset: DatasetId



class ResolvedMixtureEntry(_ResolvedMixtureEntryRequired, total=False):
    """A dataset of the mixture."""
    uri: SourceUri
    """An object or file, as `data.uri`. The resolved document names the dataset."""
    format: DatasetFormat
    """Format of the object that `uri` names; `text` by default."""
    weight: float
    """Share of the sequences (of preferences: units) that come from the dataset, relative to the
    sum of all weights; at most three decimals. All datasets have a weight, or none; the default is
    the number of sequences of the dataset."""


class _ResolvedDataRequired(TypedDict):
    tokenizer: Optional[str]
    """`bytes` (one token per byte), the id of a model with a `tokenizer.json`, or the URI of a
    `tokenizer.json` in a bucket that the operator allows or on the Hub. A URI needs a key with the
    scope `models`. `null`: the tokenizer of the initial model or of the initial checkpoint's job,
    otherwise `bytes`. A dataset of `format=tokens` has none."""
    chat_template: Optional[str]
    """Jinja template that renders the messages of a chat as text. `null`: the template of the
    initial checkpoint's job or of the tokenizer's model, otherwise ChatML. The resolved document
    has the template, or `null` for a dataset without chats."""
    parse_special_tokens: bool
    """`true` reads special tokens such as `<|im_end|>` in texts, messages and prompts as those
    tokens, for texts that a template rendered before the upload. `false` reads them as plain text,
    so that a text cannot end a turn."""
    template_date: Optional[str]
    """Day that `strftime_now` of the template returns, at 00:00 UTC. `null`: the day (UTC) on which
    the job is created, or that of the initial checkpoint's job if the template is the same."""
    packing: Literal["split", "whole", "fit"]
    """`split` concatenates documents and cuts every `sequence_length` tokens. `whole` fills each
    sequence with whole documents in order and padding, and cuts only longer documents. `fit`
    combines whole documents by best fit, for the least padding. The default is `whole` for
    `format=jsonl`, otherwise `split`. Preferences are `whole`, with one completion per sequence."""
    validation_fraction: float
    """Share of the documents, at least one, that `seed` selects for validation. Of preferences it
    is a share of the units, and of a single document a share of its sequences. Of a `mixture` it is
    a share of each dataset."""
    seed: Seed
    """Seed of the order of the samples and of the validation split."""



class ResolvedData(_ResolvedDataRequired, total=False):
    """The data, with every field; `chat` only for chats with a template. It names datasets even if
    the request has URIs."""
    dataset: DatasetId
    mixture: List[ResolvedMixtureEntry]
    uri: SourceUri
    """An object in a bucket that the operator allows, or a file on the Hub; the key needs the scope
    `datasets`. The server copies it, and the resolved document names the dataset."""
    format: DatasetFormat
    """Format of the object that `uri` names; `text` by default. A dataset has its own format."""
    chat: ResolvedChat


class _EvaluationDatasetSpecRequired(TypedDict):
    name: str
    """Unique name of the evaluation; its metric is `eval_loss/`, or with `grpo` `eval_reward/`, and
    the name. `validation` is reserved for the data of `data.validation_fraction`, whose metric is
    `eval_loss`."""



class EvaluationDatasetSpec(_EvaluationDatasetSpecRequired, total=False):
    """A dataset to evaluate on. Set exactly one of `dataset` and `uri`."""
    dataset: DatasetId
    uri: SourceUri
    """An object or file, as `data.uri`. The resolved document names the dataset."""
    format: DatasetFormat
    """Format of the object that `uri` names; `text` by default."""


class _ResolvedEvaluationDatasetRequired(TypedDict):
    name: str
    """Unique name of the evaluation; its metric is `eval_loss/`, or with `grpo` `eval_reward/`, and
    the name. `validation` is reserved for the data of `data.validation_fraction`, whose metric is
    `eval_loss`."""
    dataset: DatasetId



class ResolvedEvaluationDataset(_ResolvedEvaluationDatasetRequired, total=False):
    """A dataset to evaluate on."""
    uri: SourceUri
    """An object or file, as `data.uri`. The resolved document names the dataset."""
    format: DatasetFormat
    """Format of the object that `uri` names; `text` by default."""


class EvaluationSpec(TypedDict, total=False):
    """Evaluation during training, on the data of `data.validation_fraction` and on listed datasets.
    Needs at least one of the two; each has its own loss."""
    every_steps: int
    """Steps between evaluations. An evaluation always follows the last step."""
    datasets: List[EvaluationDatasetSpec]
    """Datasets to evaluate on, with the tokenizer, template, packing and sequence length of the
    training data."""


class PlannedEvaluation(TypedDict):
    """The evaluation, with every field. An object that has not been copied has `uri` and `format`."""
    every_steps: int
    """Steps between evaluations. An evaluation always follows the last step."""
    datasets: List[EvaluationDatasetSpec]
    """Datasets to evaluate on, with the tokenizer, template, packing and sequence length of the
    training data."""


class ResolvedEvaluation(TypedDict):
    """The evaluation, with every field. It names datasets even if the request has URIs."""
    datasets: List[EvaluationDatasetSpec]
    """Datasets to evaluate on, with the tokenizer, template, packing and sequence length of the
    training data."""
    every_steps: int
    """Steps between evaluations. An evaluation always follows the last step."""


class _ParamGroupSpecRequired(TypedDict):
    match: str
    """Pattern for whole names such as `model.layers.0.mlp.up_proj.weight`: `*` matches any
    characters, `?` matches one."""



class ParamGroupSpec(_ParamGroupSpecRequired, total=False):
    """Settings of the parameters that `match` names."""
    lr: Optional[float]
    """Peak learning rate of the group, which the schedule scales; `optimizer.lr` by default
    (`null`)."""
    weight_decay: Optional[float]
    """Weight decay of the whole group; the decay of the optimizer by default (`null`)."""
    frozen: bool
    """`true`: the parameters keep their values, rounded to `train.precision`, without gradients,
    master weights or optimizer state. The backward pass ends at the lowest trained layer."""


class OptimizerSpec(TypedDict, total=False):
    """The optimizer. `type` determines the available fields and their defaults; a field of another
    type is refused."""
    type: Literal["adamw", "adam", "lamb", "lion", "adagrad", "sgd"]
    """The update rule."""
    lr: float
    """Peak learning rate."""
    weight_decay: float
    """Weight decay of matrices; norms and biases have none unless `param_groups` sets it. `adamw`,
    `lion`: decoupled, 0.1 by default. `lamb`: in the update that the trust ratio scales, 0.1 by
    default. `adam`, `adagrad`, `sgd`: L2, added to the gradient, 0 by default."""
    betas: List[float]
    """`adamw`, `adam`, `lamb`: decay rates of the first and the second moment, `[0.9, 0.95]` by
    default. `lion`: rates of the update and of the momentum, `[0.9, 0.99]` by default. Each is in
    [0, 1)."""
    eps: float
    """Added to the root of the second moment. 1e-8 by default for `adamw` and `adam`, 1e-6 for
    `lamb`, 1e-10 for `adagrad`."""
    momentum: float
    """`sgd`: factor of the momentum; 0.9 by default."""
    dampening: float
    """`sgd`: dampening of the momentum; 0 by default."""
    nesterov: bool
    """`sgd`: Nesterov momentum, with a `momentum` and without `dampening`; false by default."""
    lr_decay: float
    """`adagrad`: decay of the rate with the steps; 0 by default."""
    initial_accumulator_value: float
    """`adagrad`: initial value of the sum of squares; 0 by default."""
    min_coeff: float
    """`lamb`: minimum trust ratio; 0.01 by default."""
    max_coeff: float
    """`lamb`: maximum trust ratio; 10 by default."""
    bias_correction: Literal["update", "step_size", "none"]
    """`lamb`: bias correction of the moments. `update` (the default): before the trust ratio, as in
    the paper. `step_size`: of the step size, after the trust ratio of an uncorrected update, as in
    DeepSpeed. `none`: no correction."""
    param_groups: List[ParamGroupSpec]
    """Settings of parameters by name. The first entry that matches a parameter applies."""


class LrScheduleSpec(TypedDict, total=False):
    """Learning rate schedule: a warm-up to `optimizer.lr`, then a decay to `min_lr`."""
    type: Literal["constant", "linear", "cosine", "wsd"]
    """Decay after the warm-up. `constant` stays at the peak. `wsd` (warm-up, stable, decay) stays
    at the peak until the last `decay_steps`, then decreases linearly."""
    warmup_steps: int
    """Number of warm-up steps, at most `steps`."""
    warmup_type: Literal["linear", "log"]
    """Form of the warm-up; `log` increases fast first."""
    warmup_start_lr: float
    """Learning rate at the beginning of the warm-up."""
    min_lr: float
    """Final value of the decay, which the step after the last one would have."""
    decay_steps: int
    """`wsd`: number of steps of the decay; a tenth of `steps` by default, rounded up."""


class LossScaleSpec(TypedDict, total=False):
    """Factor of the loss that keeps small fp16 gradients from vanishing. The gradients are divided
    by it before the update. A step whose gradients are not finite is skipped."""
    type: Literal["none", "static", "dynamic"]
    """`dynamic` halves the scale when gradients overflow, and doubles it after `window` steps
    without an overflow. The default is `dynamic` for `precision: fp16`, otherwise `none`. The other
    types need fp16 in `precision`, `reduce_dtype` or `grad_accum_dtype`."""
    initial_scale: float
    """The scale, or its initial value; 65536 by default."""
    window: int
    """`dynamic`: steps without overflow before the scale is doubled; 1000 by default."""
    hysteresis: int
    """`dynamic`: overflows before the scale is halved; 2 by default."""
    consecutive_hysteresis: bool
    """`dynamic`: a step without overflow restores the whole `hysteresis`; false by default."""
    min_scale: float
    """`dynamic`: minimum scale; 1 by default."""
    max_skipped_steps: Optional[int]
    """Consecutive skipped steps that fail the job, as `no_targets` if the steps had no targets,
    otherwise as `diverged`. An overflow at `min_scale` also fails it. `null`: neither fails the
    job, but `train.max_skipped_share` may."""


class _OverrideSpecRequired(TypedDict):
    step: int
    """Number of completed steps; below `steps`."""



class OverrideSpec(_OverrideSpecRequired, total=False):
    """A change after `step` completed steps. A value stays until a later entry changes it; `null`
    returns to the schedule, or to the loss scaler."""
    lr: Optional[float]
    """Learning rate from this step on."""
    loss_scale: Optional[float]
    """Loss scale from this step on."""
    group_lr: Dict[str, Optional[float]]
    """Learning rates of groups from this step on, by the `match` of an entry of
    `train.optimizer.param_groups`. `null` returns to the group's share of the rate of the step."""


class EmaSpec(TypedDict, total=False):
    """Exponential moving average of the trained parameters: after each update ema = decay · ema +
    (1 − decay) · parameters, from the parameters after the first update on. `export.weights`
    selects it. The training and its evaluations do not use it."""
    decay: float
    """Share of the average that an update keeps. The average covers about 1 / (1 − decay) updates."""


class _EarlyStoppingSpecRequired(TypedDict):
    patience: int
    """Consecutive evaluations without an improvement that end the training; less than the
    evaluations of the job."""



class EarlyStoppingSpec(_EarlyStoppingSpecRequired, total=False):
    """Ends the training when `metric` has not improved for `patience` evaluations. The job then
    succeeds with the reason `early_stopping`. Needs data to evaluate on. Each evaluation that
    improves is saved as a checkpoint, and the newest of these is kept."""
    metric: EvaluationMetric
    """Metric to compare. The default is the first metric of the job: `eval_loss` with
    `data.validation_fraction`, otherwise that of the first entry of `evaluation.datasets`."""
    min_delta: float
    """An evaluation improves if it is below the best value by at least this difference. The first
    finite value improves."""


class AdapterSpec(TypedDict, total=False):
    """Trains low-rank adapters (LoRA, Hu et al. 2021) over the frozen model: y = x Wᵀ + scale ·
    dropout(x) Aᵀ Bᵀ for each matrix W of the targeted modules. The parameters have the names of
    PEFT: `<module>.lora_A.weight`, `<module>.lora_B.weight`, and for `dora`
    `<module>.lora_magnitude_vector.weight`."""
    type: Literal["lora", "dora"]
    """`lora`: the products alone. `dora` (Liu et al. 2024; `use_dora` in PEFT): also trains a
    magnitude m for each output, which begins as ‖W‖: V = W + scale · B A, y = x (m / ‖V‖ · V)ᵀ. The
    gradient takes ‖V‖ for a constant."""
    rank: int
    """Rows of A and columns of B (`r` in PEFT)."""
    alpha: float
    """The scale is `alpha / rank` (`lora_alpha` in PEFT). Twice the rank by default."""
    rank_stabilized: bool
    """The scale is `alpha / √rank` (rsLoRA, Kalajdzievski 2023; `use_rslora` in PEFT)."""
    dropout: float
    """Dropout of the adapters' input. Matrices with the same input (queries, keys and values; gate
    and up) share a mask. Must be 0 for adapters over experts, and for `dora`."""
    target_modules: Union[str, List[str]]
    """Modules with adapters: names, or ends of names, such as `q_proj` or `mlp.c_proj`.
    `all-linear`: all matrices of the layers, experts and their router included."""
    modules_to_save: List[str]
    """Modules that are trained whole as well, such as `lm_head` or `input_layernorm`."""
    init: Literal["kaiming_uniform", "gaussian"]
    """Initial values of A. `kaiming_uniform`: uniform in ±1/√in, the default of PEFT. `gaussian`:
    normal with the standard deviation 1/rank. B begins with zeros."""


class StringCheckGrader(TypedDict):
    """Compares two texts. The score is 1 if the comparison holds, otherwise 0."""
    type: Literal["string_check"]
    """Type of the grader."""
    name: GraderName
    input: GraderTemplate
    reference: GraderTemplate
    operation: Literal["eq", "ne", "like", "ilike"]
    """`eq`: equal. `ne`: not equal. `like`: the input contains the reference. `ilike`: the same
    without regard to case."""


class TextSimilarityGrader(TypedDict):
    """Measures the similarity of two texts, from 0 to 1."""
    type: Literal["text_similarity"]
    """Type of the grader."""
    name: GraderName
    input: GraderTemplate
    reference: GraderTemplate
    evaluation_metric: Literal["fuzzy_match", "bleu", "gleu", "meteor", "rouge_1", "rouge_2", "rouge_3", "rouge_4", "rouge_5", "rouge_l"]
    """The metric. `cosine` is not supported, because it needs an embedding model."""


class _GraderMessageRequired(TypedDict):
    role: Literal["system", "developer", "user", "assistant"]
    """Role of the message."""
    content: GraderTemplate



class GraderMessage(_GraderMessageRequired, total=False):
    """A message to the model that scores."""
    type: Literal["message"]
    """Type of the object."""


class GraderSampling(TypedDict, total=False):
    """Sampling of the model that scores."""
    max_completions_tokens: int
    """The most tokens of its answer."""
    temperature: float
    """Temperature."""
    top_p: float
    """Nucleus sampling."""
    seed: int
    """Seed."""


class _ScoreModelGraderRequired(TypedDict):
    type: Literal["score_model"]
    """Type of the grader."""
    name: GraderName
    model: str
    """Model of the server, or without `server` a model of the project."""
    input: List[GraderMessage]
    """The messages to the model."""



class ScoreModelGrader(_ScoreModelGraderRequired, total=False):
    """Lets a model score the answer. The model answers with a JSON object whose field `result` is
    the score."""
    server: str
    """Name of an OpenAI-compatible server whose URL and key the operator has configured."""
    range: List[float]
    """The smallest and the largest score. A score outside of it is an error."""
    sampling_params: GraderSampling


class PythonGrader(TypedDict):
    """Runs `grade(sample, item)` of a Python module, which returns a number. Each grade runs in a
    process of its own, without network and files, and with limits of time and memory."""
    type: Literal["python"]
    """Type of the grader."""
    name: GraderName
    source: str
    """Source of the module."""


class WebhookGrader(TypedDict):
    """Asks a URL. It gets a signed POST, as messages of webhooks are, and answers with a JSON
    object whose field `score` is the score."""
    type: Literal["webhook"]
    """Type of the grader."""
    name: GraderName
    webhook: WebhookId
    """Webhook of the project, whose URL is asked and whose secrets sign the request."""


class MultiGrader(TypedDict):
    """Combines the scores of several graders by a formula."""
    type: Literal["multi"]
    """Type of the grader."""
    name: GraderName
    graders: Dict[str, SingleGrader]
    """Graders by their names in the formula."""
    calculate_output: str
    """Formula over the scores, with `+`, `-`, `*`, `/`, `^`, parentheses, and the functions `min`,
    `max`, `abs`, `floor`, `ceil`, `exp`, `sqrt`, `log`."""


class _PolicyLossRequired(TypedDict):
    type: Literal["importance_sampling", "ppo", "cispo"]
    """The loss."""



class PolicyLoss(_PolicyLossRequired, total=False):
    """Loss of a token with the advantage A, log p of the trained model and its value when the
    sample was drawn, whose difference has the exponential r. `importance_sampling`: −r · A. `ppo`:
    −min(r · A, clip(r, 1 − `clip_low`, 1 + `clip_high`) · A). `cispo`: −stop_gradient(clip(r)) · A
    · log p."""
    clip_low: float
    """`ppo`, `cispo`: distance of the lower bound of the ratio from 1; 0.2 by default."""
    clip_high: float
    """`ppo`, `cispo`: distance of the upper bound of the ratio from 1; 0.2 by default."""
    beta: float
    """Factor of the penalty r · (exp(d) − d − 1) with d = log b − log p, as in TRL. It estimates
    the KL divergence from the base b, which is the model without its adapter. It needs an `adapter`
    without `modules_to_save`. 0 by default: no penalty."""


class _ObjectiveSpecRequired(TypedDict):
    type: Literal["sft", "dpo", "ipo", "orpo", "kto", "simpo", "grpo"]
    """`sft`, as without an objective: the mean of −log p(target) over the targets. `dpo`: Rafailov
    et al. 2023. `ipo`: Azar et al. 2023, with means over tokens. `orpo`: Hong et al. 2024. `kto`:
    Ethayarajh et al. 2024. `simpo`: Meng et al. 2024. `docs/fine-tuning.md` has the formulas.
    `grpo`: reinforcement learning with graders (Shao et al. 2024), see `docs/reinforcement.md`."""



class ObjectiveSpec(_ObjectiveSpecRequired, total=False):
    """The training objective. Every objective but `sft` and `grpo` needs preferences as data. Batch
    sizes then count units: pairs of a chosen and a rejected completion, or for `kto` completions.
    `type` determines the available fields and their defaults; a field of another type is refused."""
    beta: float
    """`dpo`, `kto`, `simpo`: factor of the rewards. `ipo`: strength of the regularization. `orpo`:
    weight of the odds ratio (λ in the paper). 2 by default for `simpo`, otherwise 0.1."""
    label_smoothing: float
    """`dpo`: probability that the completions of a pair are swapped (conservative DPO); 0 by
    default."""
    gamma: float
    """`simpo`: margin between the rewards of a pair; 1 by default."""
    desirable_weight: float
    """`kto`: weight of desirable completions; 1 by default."""
    undesirable_weight: float
    """`kto`: weight of undesirable completions; 1 by default."""
    reference: Literal["initial", "base"]
    """`dpo`, `ipo`, `kto`: the model that the trained one is compared with. `base`: the model
    without its adapter. It needs an `adapter` without `modules_to_save`, and is then the default.
    `initial`: the model at the beginning of the job, the default otherwise."""
    grader: Grader
    prompts_per_step: int
    """`grpo`: prompts that are sampled at once; 16 by default."""
    group_size: int
    """`grpo`: samples of each prompt, which are compared with each other; 8 by default."""
    max_tokens: int
    """`grpo`: maximum tokens of a sample; half of `train.sequence_length` by default."""
    temperature: float
    """`grpo`: sampling temperature; 1 by default."""
    top_p: float
    """`grpo`: samples among the most likely tokens with this total probability; 1 by default."""
    top_k: int
    """`grpo`: samples among the k most likely tokens; 0, the default, keeps all."""
    evaluation_prompts: int
    """`grpo`: prompts of each dataset of `train.evaluation` that an evaluation answers, the first
    ones of the dataset. Answers are the most likely tokens. 256 by default, or fewer if so many
    prompts do not fit into a call."""
    num_iterations: int
    """`grpo`: optimizer steps with the same samples; 1 by default."""
    loss: PolicyLoss
    """`grpo`: loss of a token; `ppo` by default."""
    loss_type: Literal["grpo", "dapo", "dr_grpo"]
    """`grpo`: how the losses of tokens are averaged, by the names of TRL. `grpo`: over the tokens
    of each sample, then over the samples. `dapo`, the default: over all tokens. `dr_grpo`: their
    sum over the number of samples and `max_tokens`."""
    scale_rewards: Literal["group", "batch", "none"]
    """`grpo`: divisor of the advantages, by the names of TRL: the standard deviation of the rewards
    of the group (the default) or of all samples, or none. A deviation is that of a sample, plus
    0.0001."""
    max_failed_share: float
    """`grpo`: share of the samples of a step whose grading may fail; a larger one fails the job. A
    part of a grader that fails scores 0. 0.1 by default."""


class SessionSpec(TypedDict, total=False):
    """Makes the job a session: its steps come from calls (`putCall`) in place of data.
    `sequence_length` bounds a row, `global_batch_size` the rows of a pass; `micro_batch_size` is
    the number of rows of a leaf. `data` names no dataset."""
    idle_seconds: int
    """Time without calls after which the session saves and is paused. The next call resumes it."""


class TrainSpec(TypedDict, total=False):
    """The training loop."""
    steps: int
    """Number of optimizer steps. Set exactly one of `steps` and `epochs`, unless a
    `deepspeed_config` defines the steps, or `session` is set."""
    epochs: int
    """Number of passes through the training samples. The last step may begin another pass. The
    resolved document has `steps` as soon as the samples are counted."""
    sequence_length: int
    """Number of tokens of a sequence: of a sample, or of a completion with its prompt. At most the
    positions of the model."""
    global_batch_size: Union[int, str]
    """Number of samples (units of a preference `objective`) of one step. `auto`: the power of two
    nearest to 0.2 % of the training samples, from 8 to 256."""
    micro_batch_size: Union[int, str]
    """Number of samples (or units) of one micro-batch; it divides `global_batch_size`. The quotient
    is the number of leaves, which bounds the number of ranks. At least 2 for `kto`. By default the
    largest divisor up to 4. `auto`: the largest divisor that fits into the memory of the workers."""
    seed: Seed
    """Seed of the initial weights and of dropout."""
    optimizer: OptimizerSpec
    lr_schedule: LrScheduleSpec
    gradient_clipping: float
    """Maximum global gradient norm; 0 disables clipping."""
    gradient_clipping_norm: Literal["l2", "max"]
    """Norm for clipping and reports, over all parameters. `max` is the largest absolute value."""
    precision: Precision
    """Dtype of parameters, activations and gradients. Sums of matrix products and optimizer states
    are fp32."""
    loss_scale: LossScaleSpec
    max_skipped_share: Optional[float]
    """Share of the run's steps that may be skipped because gradients are not finite. The first step
    beyond it fails the job as `diverged`, or as `no_targets` if it has no targets. A last step
    whose loss is not a number fails it as `diverged`, too. `null`: neither fails the job."""
    overrides: Overrides
    activation_checkpointing: bool
    """Keeps only the input of each layer and recomputes the layer before its backward pass. An MLP
    computes 2,048 rows at once, on GPUs 16,384. Packed copies of weights, except experts, exist for
    one layer at a time. Saves memory for a third more work, with the same bits. GPUs have other
    bits for micro-batches of more than 16,384 tokens."""
    ema: EmaSpec
    evaluation: EvaluationSpec
    early_stopping: EarlyStoppingSpec
    adapter: AdapterSpec
    objective: ObjectiveSpec
    session: SessionSpec


class ResolvedParamGroup(TypedDict):
    """Settings of some parameters, with every field."""
    match: str
    """Pattern for whole names such as `model.layers.0.mlp.up_proj.weight`: `*` matches any
    characters, `?` matches one."""
    lr: Optional[float]
    """Peak learning rate of the group, which the schedule scales; `optimizer.lr` by default
    (`null`)."""
    weight_decay: Optional[float]
    """Weight decay of the whole group; the decay of the optimizer by default (`null`)."""
    frozen: bool
    """`true`: the parameters keep their values, rounded to `train.precision`, without gradients,
    master weights or optimizer state. The backward pass ends at the lowest trained layer."""


class _ResolvedOptimizerRequired(TypedDict):
    type: Literal["adamw", "adam", "lamb", "lion", "adagrad", "sgd"]
    """The update rule."""
    lr: float
    """Peak learning rate."""
    weight_decay: float
    """Weight decay of matrices; norms and biases have none unless `param_groups` sets it. `adamw`,
    `lion`: decoupled, 0.1 by default. `lamb`: in the update that the trust ratio scales, 0.1 by
    default. `adam`, `adagrad`, `sgd`: L2, added to the gradient, 0 by default."""
    param_groups: List[ResolvedParamGroup]



class ResolvedOptimizer(_ResolvedOptimizerRequired, total=False):
    """The optimizer, with every field of its type."""
    betas: List[float]
    """`adamw`, `adam`, `lamb`: decay rates of the first and the second moment, `[0.9, 0.95]` by
    default. `lion`: rates of the update and of the momentum, `[0.9, 0.99]` by default. Each is in
    [0, 1)."""
    eps: float
    """Added to the root of the second moment. 1e-8 by default for `adamw` and `adam`, 1e-6 for
    `lamb`, 1e-10 for `adagrad`."""
    momentum: float
    """`sgd`: factor of the momentum; 0.9 by default."""
    dampening: float
    """`sgd`: dampening of the momentum; 0 by default."""
    nesterov: bool
    """`sgd`: Nesterov momentum, with a `momentum` and without `dampening`; false by default."""
    lr_decay: float
    """`adagrad`: decay of the rate with the steps; 0 by default."""
    initial_accumulator_value: float
    """`adagrad`: initial value of the sum of squares; 0 by default."""
    min_coeff: float
    """`lamb`: minimum trust ratio; 0.01 by default."""
    max_coeff: float
    """`lamb`: maximum trust ratio; 10 by default."""
    bias_correction: Literal["update", "step_size", "none"]
    """`lamb`: bias correction of the moments. `update` (the default): before the trust ratio, as in
    the paper. `step_size`: of the step size, after the trust ratio of an uncorrected update, as in
    DeepSpeed. `none`: no correction."""


class _ResolvedLrScheduleRequired(TypedDict):
    type: Literal["constant", "linear", "cosine", "wsd"]
    """Decay after the warm-up. `constant` stays at the peak. `wsd` (warm-up, stable, decay) stays
    at the peak until the last `decay_steps`, then decreases linearly."""
    warmup_steps: int
    """Number of warm-up steps, at most `steps`."""
    warmup_type: Literal["linear", "log"]
    """Form of the warm-up; `log` increases fast first."""
    warmup_start_lr: float
    """Learning rate at the beginning of the warm-up."""
    min_lr: float
    """Final value of the decay, which the step after the last one would have."""



class ResolvedLrSchedule(_ResolvedLrScheduleRequired, total=False):
    """The learning rate schedule, with every field of its type."""
    decay_steps: int
    """`wsd`: number of steps of the decay; a tenth of `steps` by default, rounded up."""


class _ResolvedLossScaleRequired(TypedDict):
    type: Literal["none", "static", "dynamic"]
    """`dynamic` halves the scale when gradients overflow, and doubles it after `window` steps
    without an overflow. The default is `dynamic` for `precision: fp16`, otherwise `none`. The other
    types need fp16 in `precision`, `reduce_dtype` or `grad_accum_dtype`."""
    max_skipped_steps: Optional[int]
    """Consecutive skipped steps that fail the job, as `no_targets` if the steps had no targets,
    otherwise as `diverged`. An overflow at `min_scale` also fails it. `null`: neither fails the
    job, but `train.max_skipped_share` may."""



class ResolvedLossScale(_ResolvedLossScaleRequired, total=False):
    """The loss scale, with every field of its type."""
    initial_scale: float
    """The scale, or its initial value; 65536 by default."""
    window: int
    """`dynamic`: steps without overflow before the scale is doubled; 1000 by default."""
    hysteresis: int
    """`dynamic`: overflows before the scale is halved; 2 by default."""
    consecutive_hysteresis: bool
    """`dynamic`: a step without overflow restores the whole `hysteresis`; false by default."""
    min_scale: float
    """`dynamic`: minimum scale; 1 by default."""


class ResolvedEma(TypedDict):
    """The average of the parameters, with every field."""
    decay: float
    """Share of the average that an update keeps. The average covers about 1 / (1 − decay) updates."""


class ResolvedEarlyStopping(TypedDict):
    """Early stopping, with every field."""
    metric: EvaluationMetric
    """Metric to compare. The default is the first metric of the job: `eval_loss` with
    `data.validation_fraction`, otherwise that of the first entry of `evaluation.datasets`."""
    patience: int
    """Consecutive evaluations without an improvement that end the training; less than the
    evaluations of the job."""
    min_delta: float
    """An evaluation improves if it is below the best value by at least this difference. The first
    finite value improves."""


class ResolvedAdapter(TypedDict):
    """The adapters, with every field, and the names of the targeted modules."""
    type: Literal["lora", "dora"]
    """`lora`: the products alone. `dora` (Liu et al. 2024; `use_dora` in PEFT): also trains a
    magnitude m for each output, which begins as ‖W‖: V = W + scale · B A, y = x (m / ‖V‖ · V)ᵀ. The
    gradient takes ‖V‖ for a constant."""
    rank: int
    """Rows of A and columns of B (`r` in PEFT)."""
    alpha: float
    """The scale is `alpha / rank` (`lora_alpha` in PEFT). Twice the rank by default."""
    rank_stabilized: bool
    """The scale is `alpha / √rank` (rsLoRA, Kalajdzievski 2023; `use_rslora` in PEFT)."""
    dropout: float
    """Dropout of the adapters' input. Matrices with the same input (queries, keys and values; gate
    and up) share a mask. Must be 0 for adapters over experts, and for `dora`."""
    target_modules: List[str]
    modules_to_save: List[str]
    """Modules that are trained whole as well, such as `lm_head` or `input_layernorm`."""
    init: Literal["kaiming_uniform", "gaussian"]
    """Initial values of A. `kaiming_uniform`: uniform in ±1/√in, the default of PEFT. `gaussian`:
    normal with the standard deviation 1/rank. B begins with zeros."""


class _ResolvedPreferencesRequired(TypedDict):
    type: Literal["dpo", "ipo", "orpo", "kto", "simpo"]
    beta: float
    """`dpo`, `kto`, `simpo`: factor of the rewards. `ipo`: strength of the regularization. `orpo`:
    weight of the odds ratio (λ in the paper). 2 by default for `simpo`, otherwise 0.1."""



class ResolvedPreferences(_ResolvedPreferencesRequired, total=False):
    """The preference objective, with every field of its type."""
    label_smoothing: float
    """`dpo`: probability that the completions of a pair are swapped (conservative DPO); 0 by
    default."""
    gamma: float
    """`simpo`: margin between the rewards of a pair; 1 by default."""
    desirable_weight: float
    """`kto`: weight of desirable completions; 1 by default."""
    undesirable_weight: float
    """`kto`: weight of undesirable completions; 1 by default."""
    reference: Literal["initial", "base"]
    """`dpo`, `ipo`, `kto`: the model that the trained one is compared with. `base`: the model
    without its adapter. It needs an `adapter` without `modules_to_save`, and is then the default.
    `initial`: the model at the beginning of the job, the default otherwise."""
    grader: Grader
    prompts_per_step: int
    """`grpo`: prompts that are sampled at once; 16 by default."""
    group_size: int
    """`grpo`: samples of each prompt, which are compared with each other; 8 by default."""
    max_tokens: int
    """`grpo`: maximum tokens of a sample; half of `train.sequence_length` by default."""
    temperature: float
    """`grpo`: sampling temperature; 1 by default."""
    top_p: float
    """`grpo`: samples among the most likely tokens with this total probability; 1 by default."""
    top_k: int
    """`grpo`: samples among the k most likely tokens; 0, the default, keeps all."""
    evaluation_prompts: int
    """`grpo`: prompts of each dataset of `train.evaluation` that an evaluation answers, the first
    ones of the dataset. Answers are the most likely tokens. 256 by default, or fewer if so many
    prompts do not fit into a call."""
    num_iterations: int
    """`grpo`: optimizer steps with the same samples; 1 by default."""
    loss: PolicyLoss
    """`grpo`: loss of a token; `ppo` by default."""
    loss_type: Literal["grpo", "dapo", "dr_grpo"]
    """`grpo`: how the losses of tokens are averaged, by the names of TRL. `grpo`: over the tokens
    of each sample, then over the samples. `dapo`, the default: over all tokens. `dr_grpo`: their
    sum over the number of samples and `max_tokens`."""
    scale_rewards: Literal["group", "batch", "none"]
    """`grpo`: divisor of the advantages, by the names of TRL: the standard deviation of the rewards
    of the group (the default) or of all samples, or none. A deviation is that of a sample, plus
    0.0001."""
    max_failed_share: float
    """`grpo`: share of the samples of a step whose grading may fail; a larger one fails the job. A
    part of a grader that fails scores 0. 0.1 by default."""


class _ResolvedReinforcementRequired(TypedDict):
    type: Literal["grpo"]
    grader: Grader
    prompts_per_step: int
    """`grpo`: prompts that are sampled at once; 16 by default."""
    group_size: int
    """`grpo`: samples of each prompt, which are compared with each other; 8 by default."""
    max_tokens: int
    """`grpo`: maximum tokens of a sample; half of `train.sequence_length` by default."""
    temperature: float
    """`grpo`: sampling temperature; 1 by default."""
    top_p: float
    """`grpo`: samples among the most likely tokens with this total probability; 1 by default."""
    top_k: int
    """`grpo`: samples among the k most likely tokens; 0, the default, keeps all."""
    evaluation_prompts: int
    """`grpo`: prompts of each dataset of `train.evaluation` that an evaluation answers, the first
    ones of the dataset. Answers are the most likely tokens. 256 by default, or fewer if so many
    prompts do not fit into a call."""
    num_iterations: int
    """`grpo`: optimizer steps with the same samples; 1 by default."""
    loss: PolicyLoss
    """`grpo`: loss of a token; `ppo` by default."""
    loss_type: Literal["grpo", "dapo", "dr_grpo"]
    """`grpo`: how the losses of tokens are averaged, by the names of TRL. `grpo`: over the tokens
    of each sample, then over the samples. `dapo`, the default: over all tokens. `dr_grpo`: their
    sum over the number of samples and `max_tokens`."""
    scale_rewards: Literal["group", "batch", "none"]
    """`grpo`: divisor of the advantages, by the names of TRL: the standard deviation of the rewards
    of the group (the default) or of all samples, or none. A deviation is that of a sample, plus
    0.0001."""
    max_failed_share: float
    """`grpo`: share of the samples of a step whose grading may fail; a larger one fails the job. A
    part of a grader that fails scores 0. 0.1 by default."""



class ResolvedReinforcement(_ResolvedReinforcementRequired, total=False):
    """Reinforcement learning, with every field."""
    beta: float
    """`dpo`, `kto`, `simpo`: factor of the rewards. `ipo`: strength of the regularization. `orpo`:
    weight of the odds ratio (λ in the paper). 2 by default for `simpo`, otherwise 0.1."""
    label_smoothing: float
    """`dpo`: probability that the completions of a pair are swapped (conservative DPO); 0 by
    default."""
    gamma: float
    """`simpo`: margin between the rewards of a pair; 1 by default."""
    desirable_weight: float
    """`kto`: weight of desirable completions; 1 by default."""
    undesirable_weight: float
    """`kto`: weight of undesirable completions; 1 by default."""
    reference: Literal["initial", "base"]
    """`dpo`, `ipo`, `kto`: the model that the trained one is compared with. `base`: the model
    without its adapter. It needs an `adapter` without `modules_to_save`, and is then the default.
    `initial`: the model at the beginning of the job, the default otherwise."""


class ResolvedSession(TypedDict):
    """The session, with every field."""
    idle_seconds: int
    """Time without calls after which the session saves and is paused. The next call resumes it."""


class _PlannedTrainRequired(TypedDict):
    sequence_length: int
    """Number of tokens of a sequence: of a sample, or of a completion with its prompt. At most the
    positions of the model."""
    global_batch_size: int
    micro_batch_size: int
    seed: Seed
    """Seed of the initial weights and of dropout."""
    optimizer: ResolvedOptimizer
    lr_schedule: ResolvedLrSchedule
    gradient_clipping: float
    """Maximum global gradient norm; 0 disables clipping."""
    gradient_clipping_norm: Literal["l2", "max"]
    """Norm for clipping and reports, over all parameters. `max` is the largest absolute value."""
    precision: Precision
    """Dtype of parameters, activations and gradients. Sums of matrix products and optimizer states
    are fp32."""
    loss_scale: ResolvedLossScale
    max_skipped_share: Optional[float]
    """Share of the run's steps that may be skipped because gradients are not finite. The first step
    beyond it fails the job as `diverged`, or as `no_targets` if it has no targets. A last step
    whose loss is not a number fails it as `diverged`, too. `null`: neither fails the job."""
    overrides: Overrides
    activation_checkpointing: bool
    """Keeps only the input of each layer and recomputes the layer before its backward pass. An MLP
    computes 2,048 rows at once, on GPUs 16,384. Packed copies of weights, except experts, exist for
    one layer at a time. Saves memory for a third more work, with the same bits. GPUs have other
    bits for micro-batches of more than 16,384 tokens."""



class PlannedTrain(_PlannedTrainRequired, total=False):
    """The training loop, with every field; `evaluation` only with data to evaluate on, `ema`,
    `early_stopping` and `adapter` only if they are set, `objective` only if it is another than
    `sft`, `session` only in a session, which has no `steps`. `steps` instead of `epochs`, which
    stay, with `decay_steps` absent if it follows from the steps, until a worker has counted the
    samples."""
    steps: int
    """Number of optimizer steps. Set exactly one of `steps` and `epochs`, unless a
    `deepspeed_config` defines the steps, or `session` is set."""
    epochs: int
    """Number of passes through the training samples. The last step may begin another pass. The
    resolved document has `steps` as soon as the samples are counted."""
    ema: ResolvedEma
    evaluation: PlannedEvaluation
    early_stopping: ResolvedEarlyStopping
    adapter: ResolvedAdapter
    objective: ResolvedObjective
    session: ResolvedSession


class _ResolvedTrainRequired(TypedDict):
    sequence_length: int
    """Number of tokens of a sequence: of a sample, or of a completion with its prompt. At most the
    positions of the model."""
    global_batch_size: int
    micro_batch_size: int
    seed: Seed
    """Seed of the initial weights and of dropout."""
    optimizer: ResolvedOptimizer
    lr_schedule: ResolvedLrSchedule
    gradient_clipping: float
    """Maximum global gradient norm; 0 disables clipping."""
    gradient_clipping_norm: Literal["l2", "max"]
    """Norm for clipping and reports, over all parameters. `max` is the largest absolute value."""
    precision: Precision
    """Dtype of parameters, activations and gradients. Sums of matrix products and optimizer states
    are fp32."""
    loss_scale: ResolvedLossScale
    max_skipped_share: Optional[float]
    """Share of the run's steps that may be skipped because gradients are not finite. The first step
    beyond it fails the job as `diverged`, or as `no_targets` if it has no targets. A last step
    whose loss is not a number fails it as `diverged`, too. `null`: neither fails the job."""
    overrides: Overrides
    activation_checkpointing: bool
    """Keeps only the input of each layer and recomputes the layer before its backward pass. An MLP
    computes 2,048 rows at once, on GPUs 16,384. Packed copies of weights, except experts, exist for
    one layer at a time. Saves memory for a third more work, with the same bits. GPUs have other
    bits for micro-batches of more than 16,384 tokens."""



class ResolvedTrain(_ResolvedTrainRequired, total=False):
    """The training loop, with every field."""
    evaluation: PlannedEvaluation
    steps: int
    """Number of optimizer steps. Set exactly one of `steps` and `epochs`, unless a
    `deepspeed_config` defines the steps, or `session` is set."""
    epochs: int
    """Number of passes through the training samples. The last step may begin another pass. The
    resolved document has `steps` as soon as the samples are counted."""
    ema: ResolvedEma
    early_stopping: ResolvedEarlyStopping
    adapter: ResolvedAdapter
    objective: ResolvedObjective
    session: ResolvedSession


class ZeroSpec(TypedDict, total=False):
    """Sharding of the optimizer over the ranks. The dtypes, `lanes`, `lane_group`,
    `gradient_predivide_factor` and `expert_parallel_size` change the result by rounding. `stage`
    alone, `bucket_bytes` and `offload` do not."""
    stage: Literal[1, 2]
    """`2` shards optimizer state and gradients, and exchanges the gradients of every leaf. `1`
    shards optimizer state, and exchanges sums of the gradients of lanes: less traffic, more memory."""
    lanes: int
    """Stage 1: number of partial sums of a step, from `resources.ranks.max` (the default) to the
    number of leaves. Leaf v belongs to lane v mod `lanes`."""
    lane_group: int
    """Number of consecutive lanes (at stage 2: leaves) whose gradients are first added in fp32 and
    rounded to `reduce_dtype`. With the number of ranks per machine, each machine sends 1 /
    `lane_group` of the bytes to the others."""
    bucket_bytes: int
    """Size of the gradient buckets, which are exchanged during the backward pass. The default is a
    sixteenth of all gradients, rounded up to a power of two, from 16 to 128 MiB. A model may have
    16,384 buckets."""
    reduce_dtype: Precision
    """Dtype of gradients in transfer; `train.precision` by default."""
    grad_accum_dtype: Precision
    """Dtype of the sums of the gradients of a step."""
    master_dtype: Literal["fp32", "fp16"]
    """Dtype of the master weights. `fp16` needs `offload: cpu` and `train.precision: fp16`."""
    gradient_predivide_factor: float
    """Divisor of gradients before the exchange, and factor of their sum; it prevents overflow of a
    16-bit `reduce_dtype`. With `train.precision: fp16` the loss of a micro-batch is also divided by
    the micro-batches of a step over this factor."""
    offload: Literal["none", "cpu"]
    """`cpu` keeps master weights, optimizer state and gradient sums of a GPU worker in host memory,
    and updates them there. On a CPU worker it changes nothing."""
    expert_parallel_size: int
    """Number of ranks that share the experts of a mixture of experts; tokens are sent to their
    experts. It divides the experts, the leaves of a step, `lanes`, and every number of ranks."""


class _ResolvedZeroRequired(TypedDict):
    stage: Literal[1, 2]
    """`2` shards optimizer state and gradients, and exchanges the gradients of every leaf. `1`
    shards optimizer state, and exchanges sums of the gradients of lanes: less traffic, more memory."""
    lane_group: int
    """Number of consecutive lanes (at stage 2: leaves) whose gradients are first added in fp32 and
    rounded to `reduce_dtype`. With the number of ranks per machine, each machine sends 1 /
    `lane_group` of the bytes to the others."""
    bucket_bytes: int
    """Size of the gradient buckets, which are exchanged during the backward pass. The default is a
    sixteenth of all gradients, rounded up to a power of two, from 16 to 128 MiB. A model may have
    16,384 buckets."""
    reduce_dtype: Precision
    """Dtype of gradients in transfer; `train.precision` by default."""
    grad_accum_dtype: Precision
    """Dtype of the sums of the gradients of a step."""
    master_dtype: Literal["fp32", "fp16"]
    """Dtype of the master weights. `fp16` needs `offload: cpu` and `train.precision: fp16`."""
    gradient_predivide_factor: float
    """Divisor of gradients before the exchange, and factor of their sum; it prevents overflow of a
    16-bit `reduce_dtype`. With `train.precision: fp16` the loss of a micro-batch is also divided by
    the micro-batches of a step over this factor."""
    offload: Literal["none", "cpu"]
    """`cpu` keeps master weights, optimizer state and gradient sums of a GPU worker in host memory,
    and updates them there. On a CPU worker it changes nothing."""
    expert_parallel_size: int
    """Number of ranks that share the experts of a mixture of experts; tokens are sent to their
    experts. It divides the experts, the leaves of a step, `lanes`, and every number of ranks."""



class ResolvedZero(_ResolvedZeroRequired, total=False):
    """The sharding, with every field; `lanes` at stage 1 only."""
    lanes: int
    """Stage 1: number of partial sums of a step, from `resources.ranks.max` (the default) to the
    number of leaves. Leaf v belongs to lane v mod `lanes`."""


class RanksSpec(TypedDict, total=False):
    """Number of ranks: `min` ≤ `preferred` ≤ `max` ≤ leaves. Each is a multiple of
    `zero.expert_parallel_size`, which is the default of `min`."""
    min: int
    """Minimum number of ranks."""
    max: int
    """Maximum number of ranks; `preferred` by default."""
    preferred: int
    """Number of ranks to start with."""


class ResourcesSpec(TypedDict, total=False):
    """Placement of the job."""
    pool: str
    """Pool of workers that runs the job."""
    ranks: RanksSpec


class ResolvedRanks(TypedDict):
    """Number of ranks, with every field."""
    min: int
    """Minimum number of ranks."""
    max: int
    """Maximum number of ranks; `preferred` by default."""
    preferred: int
    """Number of ranks to start with."""


class ResolvedResources(TypedDict):
    """Placement of the job, with every field."""
    pool: str
    """Pool of workers that runs the job."""
    ranks: ResolvedRanks


class KeepSpec(TypedDict, total=False):
    """Checkpoints to keep. A checkpoint stays if either rule keeps it."""
    last: int
    """Number of newest checkpoints to keep; 100 by default in a session."""
    best: int
    """Number of checkpoints with the best `best_metric` to keep, among those at a step with an
    evaluation. Needs data to evaluate on. Without `train.early_stopping`, one of `every_steps` and
    `train.evaluation.every_steps` is a multiple of the other."""
    best_metric: EvaluationMetric
    """Metric that `best` compares. The default is the metric of `train.early_stopping`, otherwise
    the first metric of the job."""


class PromptMessage(TypedDict):
    """A message of a chat."""
    role: str
    """Role of the author, as named by the template."""
    content: str
    """Text of the message."""


class PromptSpec(TypedDict, total=False):
    """A text or a chat. Set exactly one of `prompt` and `messages`."""
    prompt: str
    """The text that the model continues."""
    messages: List[PromptMessage]
    """The chat that the model answers, rendered by the chat template of the data."""


class _SamplesSpecRequired(TypedDict):
    prompts: List[PromptSpec]
    """Texts to continue and chats to answer."""



class SamplesSpec(_SamplesSpecRequired, total=False):
    """Prompts that checkpoints answer, to show what the model learns. Workers of the pool answer
    them, and the training does not wait. The newest checkpoint of an ended job answers, and before
    it at most one in each 200th part of the training. The event `samples.answered` has the first
    2,000 characters of each answer."""
    max_tokens: int
    """Maximum number of tokens of an answer."""
    temperature: float
    """Sampling temperature; 0 selects the most likely token each time."""
    top_k: int
    """Samples among the k most likely tokens; 0 keeps all."""
    top_p: float
    """Samples among the fewest of these tokens whose probabilities sum to this share; 1 keeps all."""
    seed: Seed
    """Seed of each answer, the same at all checkpoints."""


class CheckpointSpec(TypedDict, total=False):
    """Interval and retention of checkpoints."""
    every_steps: int
    """Steps between checkpoints. Set at most one of `every_steps`, `every_seconds` and `auto`; the
    default is 100 steps."""
    every_seconds: float
    """Seconds of training between checkpoints."""
    auto: Literal[True]
    """Uses the interval with the smallest expected loss of time (Young and Daly), from the measured
    cost of a save and the failure rate."""
    on_busy: Literal["skip", "wait"]
    """Behaviour when a checkpoint is due while the two previous ones are still being stored: `skip`
    omits it, `wait` stalls the training."""
    keep: KeepSpec
    samples: SamplesSpec
    keep_every: int
    """Checkpoints at multiples of this number of steps are kept permanently, besides those of
    `keep`."""


class _ResolvedKeepRequired(TypedDict):
    last: int
    """Number of newest checkpoints to keep; 100 by default in a session."""
    best: int
    """Number of checkpoints with the best `best_metric` to keep, among those at a step with an
    evaluation. Needs data to evaluate on. Without `train.early_stopping`, one of `every_steps` and
    `train.evaluation.every_steps` is a multiple of the other."""



class ResolvedKeep(_ResolvedKeepRequired, total=False):
    """Number of checkpoints to keep, with every field."""
    best_metric: EvaluationMetric
    """Metric that `best` compares. The default is the metric of `train.early_stopping`, otherwise
    the first metric of the job."""


class ResolvedSamples(TypedDict):
    """The prompts, with every field."""
    prompts: List[PromptSpec]
    """Texts to continue and chats to answer."""
    max_tokens: int
    """Maximum number of tokens of an answer."""
    temperature: float
    """Sampling temperature; 0 selects the most likely token each time."""
    top_k: int
    """Samples among the k most likely tokens; 0 keeps all."""
    top_p: float
    """Samples among the fewest of these tokens whose probabilities sum to this share; 1 keeps all."""
    seed: Seed
    """Seed of each answer, the same at all checkpoints."""


class _ResolvedCheckpointRequired(TypedDict):
    on_busy: Literal["skip", "wait"]
    """Behaviour when a checkpoint is due while the two previous ones are still being stored: `skip`
    omits it, `wait` stalls the training."""
    keep: ResolvedKeep



class ResolvedCheckpoint(_ResolvedCheckpointRequired, total=False):
    """Checkpoint interval and retention, with every field; exactly one of the three intervals."""
    every_steps: int
    """Steps between checkpoints. Set at most one of `every_steps`, `every_seconds` and `auto`; the
    default is 100 steps."""
    every_seconds: float
    """Seconds of training between checkpoints."""
    auto: Literal[True]
    """Uses the interval with the smallest expected loss of time (Young and Daly), from the measured
    cost of a save and the failure rate."""
    samples: ResolvedSamples
    keep_every: int
    """Checkpoints at multiples of this number of steps are kept permanently, besides those of
    `keep`."""


class LimitsSpec(TypedDict, total=False):
    """Limits of the job. A job that reaches a limit stops with the reason `budget_reached`.
    `resume` grants the whole limits again."""
    max_runtime: int
    """Maximum time in seconds that the job holds slots."""
    max_wait: int
    """Maximum uninterrupted wait for slots, in seconds."""
    max_cost: float
    """Maximum cost of the job's slots, at the price per rank-hour that the workers report."""
    on_limit: Literal["pause", "cancel"]
    """`pause` saves first, then pauses the job. `cancel` keeps the existing checkpoints."""


class _ResolvedLimitsRequired(TypedDict):
    on_limit: Literal["pause", "cancel"]
    """`pause` saves first, then pauses the job. `cancel` keeps the existing checkpoints."""



class ResolvedLimits(_ResolvedLimitsRequired, total=False):
    """Limits of the job, with every field; an absent limit is unlimited."""
    max_runtime: int
    """Maximum time in seconds that the job holds slots."""
    max_wait: int
    """Maximum uninterrupted wait for slots, in seconds."""
    max_cost: float
    """Maximum cost of the job's slots, at the price per rank-hour that the workers report."""


class RetrySpec(TypedDict, total=False):
    """Errors and preemptions that the job survives."""
    max_errors: int
    """Number of consecutive errors without a new checkpoint."""
    preemptions: Optional[int]
    """Number of preemptions (a spot notice, a scale-in, a job of higher priority). The next one
    pauses the job with the reason `preemption_limit`. `resume` resets the count. `null`: any
    number."""


class ResolvedRetry(TypedDict):
    """Handling of errors and preemptions, with every field."""
    max_errors: int
    """Number of consecutive errors without a new checkpoint."""
    preemptions: Optional[int]
    """Number of preemptions (a spot notice, a scale-in, a job of higher priority). The next one
    pauses the job with the reason `preemption_limit`. `resume` resets the count. `null`: any
    number."""


class ExportSpec(TypedDict, total=False):
    """Export of the weights when the job has finished."""
    format: Literal["safetensors", "peft"]
    """`safetensors`: a Hugging Face model folder, adapters merged. `peft`: the adapters alone, as a
    folder of PEFT."""
    dtype: Literal["bf16", "fp16", "fp32"]
    """Dtype of the exported weights."""
    weights: ExportWeights
    checkpoint: Literal["best", "last"]
    """Checkpoint to export. `best`: the newest evaluation that improved. It needs
    `train.early_stopping`, and is the default with it. `last`: the last trained step, the default
    otherwise."""
    tensorboard: ExportTensorboard


class ResolvedExport(TypedDict):
    """The exported weights, with every field."""
    format: Literal["safetensors", "peft"]
    """`safetensors`: a Hugging Face model folder, adapters merged. `peft`: the adapters alone, as a
    folder of PEFT."""
    dtype: Literal["bf16", "fp16", "fp32"]
    """Dtype of the exported weights."""
    weights: ExportWeights
    checkpoint: Literal["best", "last"]
    """Checkpoint to export. `best`: the newest evaluation that improved. It needs
    `train.early_stopping`, and is the default with it. `last`: the last trained step, the default
    otherwise."""
    tensorboard: ExportTensorboard


class NotifySpec(TypedDict, total=False):
    """Webhooks that receive the job's events, besides the webhooks for all jobs."""
    webhooks: List[WebhookId]
    """Webhooks of the project with `jobs` `named`. A webhook for all jobs receives each event of
    this job once."""


class ResolvedNotify(TypedDict):
    """Webhooks of the job, with every field."""
    webhooks: List[WebhookId]
    """Webhooks of the project with `jobs` `named`. A webhook for all jobs receives each event of
    this job once."""


class _IntegrationRequired(TypedDict):
    type: Literal["mlflow", "wandb"]
    """Kind of the tracker: MLflow, or Weights & Biases."""



class Integration(_IntegrationRequired, total=False):
    """An experiment tracker, and the run of the job there. `mlflow` needs `experiment`, and exactly
    one of `server` and `url`. `wandb` needs `server` and `project`. A field of another type is
    refused."""
    server: str
    """Name of a server whose URL and credentials the operator has configured."""
    url: str
    """`mlflow`: URL of a server without credentials. `http` and addresses that are not public need
    the operator's permission, as for webhooks."""
    experiment: str
    """`mlflow`: name of the experiment, which is created if it does not exist."""
    entity: str
    """`wandb`: user or team that owns the project; the default entity of the API key by default."""
    project: str
    """`wandb`: name of the project, which is created if it does not exist."""
    run_name: str
    """Name of the run; the name of the job by default, or its id."""


class _ResolvedJobSpecRequired(TypedDict):
    name: str
    """Display name; empty when absent."""
    project: ProjectName
    labels: Labels
    notes: Notes
    priority: Priority
    model: ResolvedModel
    data: ResolvedData
    train: ResolvedTrain
    zero: ResolvedZero
    resources: ResolvedResources
    checkpoint: ResolvedCheckpoint
    limits: ResolvedLimits
    retry: ResolvedRetry
    export: ResolvedExport
    notify: ResolvedNotify
    integrations: Integrations



class ResolvedJobSpec(_ResolvedJobSpecRequired, total=False):
    """The job document with every default filled in. Training is a function of it alone."""
    sources: Sources


class EarlyStoppingProgress(TypedDict):
    """Evaluations so far; present only with `train.early_stopping`."""
    best_eval_loss: Optional[float]
    """Value of `metric` at the newest evaluation that improved, in nats per token; `null` before
    the first."""
    best_step: Optional[int]
    """Step of that evaluation."""
    evaluations_without_improvement: int
    """Number of evaluations since then; at `patience` the training ends."""


class EvaluationProgress(TypedDict):
    """Evaluations of one dataset so far, in nats per token."""
    step: int
    """Step of the newest evaluation."""
    loss: Optional[float]
    """Loss of the newest evaluation, with the objective `grpo` its mean reward; `null` when not
    finite."""
    best_step: Optional[int]
    """Step of the evaluation with the best loss, the first of equal ones; `null` without a finite
    one."""
    best_loss: Optional[float]
    """The best loss of an evaluation, with the objective `grpo` the highest mean reward."""


class PreferenceMetrics(TypedDict):
    """Means over the pairs of a step or an evaluation; of `kto` over the desirable completions,
    which are the chosen ones, and the undesirable ones. `null` when not finite, or without such a
    completion."""
    reward_chosen: Optional[float]
    """Reward: `beta` times the log-probability less that of the reference (`dpo`, `kto`), in `ipo`
    divided by the number of tokens; `beta` times the mean log-probability of a token (`orpo`,
    `simpo`)."""
    reward_rejected: Optional[float]
    """Reward of the rejected completions."""
    margin: Optional[float]
    """`reward_chosen` less `reward_rejected`."""
    accuracy: Optional[float]
    """Fraction of the pairs whose chosen completion has the larger reward; of `kto` the completions
    whose reward is on their side of the reference point."""
    log_prob_chosen: Optional[float]
    """Log-probability of a whole completion, in nats."""
    log_prob_rejected: Optional[float]
    """Log-probability of the rejected completions."""


class _ProgressRequired(TypedDict):
    step: int
    """Number of completed steps."""
    total_steps: Optional[int]
    """Total number of steps; `null` until the samples of `train.epochs` are counted."""
    tokens: int
    """Useful tokens processed so far: tokens of sequences, without padding. A step counts the mean
    of the data."""
    percent: Optional[float]
    """`step` in percent of `total_steps`; `null` without that."""
    loss: Optional[float]
    """Mean loss of the last step, in nats per token."""
    tokens_per_second: Optional[float]
    """Useful tokens per second over the last steps."""
    eta_seconds: Optional[float]
    """Estimated time until the last step."""



class Progress(_ProgressRequired, total=False):
    """Progress of the training."""
    loss_scale: float
    """Loss scale of the last step; 1 without loss scaling."""
    skipped_steps: int
    """Steps so far that were skipped because their gradients were not finite; they changed nothing."""
    padding: float
    """Share of padding in the sequences of the training. Present from the first step on."""
    early_stopping: EarlyStoppingProgress
    evaluations: Dict[str, EvaluationProgress]
    """The newest and the best evaluation by the name of their data: `validation` and the names of
    `train.evaluation.datasets`. Present from the first evaluation on."""
    preference: PreferenceMetrics
    """Of the last step; present only with a preference `objective`."""


class CheckpointRef(TypedDict):
    """The newest committed checkpoint."""
    id: CheckpointId
    step: int
    """Completed steps at the time of the checkpoint."""
    state_digest: StateDigest


class Usage(TypedDict):
    """Usage of the job so far, updated every few seconds while it holds slots."""
    run_seconds: float
    """Time for which the job held slots."""
    rank_seconds: float
    """Sum over its slots of the time for which the job held them."""
    cost: float
    """Cost of its slots, at the price per rank-hour that the workers report."""


class ExportFile(TypedDict):
    """One file of the model folder."""
    name: str
    """File name."""
    bytes: int
    """Size."""
    sha256: str
    """SHA-256 of the content."""


class _ExportResultRequired(TypedDict):
    checkpoint_id: CheckpointId
    step: int
    """Completed steps at the time of the checkpoint."""
    prefix: str
    """Prefix of its objects in the object store."""
    state_digest: StateDigest
    files: List[ExportFile]
    """The files of the model folder."""



class ExportResult(_ExportResultRequired, total=False):
    """The exported model."""
    base_quantization: Literal["nf4", "int8"]
    """How the matrices of the base under the adapters were stored in training, and what the weights
    were computed from (`model.quantization`); absent if in the training precision."""


class _FieldErrorRequired(TypedDict):
    pointer: str
    """JSON pointer into the body, or `/query/…`, `/path/…`, `/header/…` for a parameter."""
    code: str
    """Stable code of the field error"""
    message: str
    """Description of the problem, for users."""



class FieldError(_FieldErrorRequired, total=False):
    """One bad field."""
    suggestion: str
    """Suggested field or value."""


class _FailureRequired(TypedDict):
    category: FailureCategory
    code: str
    """Stable code of the error catalogue."""
    message: str
    """Message for users."""
    rank: Optional[int]
    """Rank that failed; null for other errors."""
    step: Optional[int]
    """Step at which it failed; null when unknown."""
    retryable: bool
    """True if a retry of the same job may succeed."""



class Failure(_FailureRequired, total=False):
    """Failure of a job."""
    host: str
    """Host name of the machine on which the rank ran; null for other errors."""
    exit_code: Optional[int]
    """Exit code of the rank; `null` if it did not exit by itself."""
    signal: Optional[str]
    """Signal that ended the rank, e.g. `SIGKILL`; `null` without one."""
    output: List[str]
    """The last lines that the rank wrote to standard output and standard error, oldest first."""
    errors: List[FieldError]
    """Fields of the document that turned out to be invalid when a worker had counted the samples of
    `train.epochs`; present with the code `validation_failed` only."""


class _WarningRequired(TypedDict):
    pointer: str
    """JSON pointer into the job document, or into the returned model."""
    code: Literal["field_without_effect", "default_chat_template", "no_stop_token", "repeated_begin", "nothing_learned", "cut", "system_not_rendered", "reasoning_not_rendered", "tokenizer_not_read", "tokenizer_flaw", "mixed_dtypes"]
    """Stable code of the warning"""
    message: str
    """What was found and what to do, for users."""



class Warning(_WarningRequired, total=False):
    """Something accepted that has no effect, or not the intended one."""
    suggestion: int
    """Value of the field at `pointer` without this warning."""


class _JobRequired(TypedDict):
    id: JobId
    name: str
    """Name from the document."""
    state: JobState
    reason: Optional[str]
    """Reason for the state, an open set of codes."""
    state_version: int
    """Version of the state and of the user's requests. It increases with each change, by an
    arbitrary amount, and a value that was lost with Redis is never reused."""
    state_history: List[StateChange]
    """States of the job, oldest first; the newest 200."""
    created_at: Time
    updated_at: Time
    spec: ResolvedJobSpec
    labels: Labels
    progress: Progress
    attempt: int
    """Number of the queued or running attempt; each resume begins a new one."""
    epoch: int
    """Increases each time that a worker claims the job; it fences the writes of the previous
    worker."""
    world_size: Optional[int]
    """Number of running ranks; `null` without any."""
    requested_ranks: int
    """Number of ranks that the next attempt requests."""
    queue_position: Optional[int]
    """Position among the jobs of the pool that wait for slots, from 1; `null` for a job that does
    not wait. Jobs of projects that use fewer slots, and small jobs, may overtake it."""
    latest_checkpoint: Optional[CheckpointRef]
    lost_work_seconds: float
    """Training time that recoveries had to repeat."""
    usage: Usage
    export: Optional[ExportResult]
    failure: Optional[Failure]



class Job(_JobRequired, total=False):
    """The current state of a job."""
    warnings: List[Warning]
    """Fields of the document without effect; present only in the response to the creation of the
    job, and only if there are any."""


class JobPage(TypedDict):
    """A page of jobs."""
    data: List[Job]
    next_cursor: NextCursor


class Problem(TypedDict):
    """An error, as described by RFC 9457."""
    type: str
    """`urn:zerofleet:error:` followed by the code."""
    title: str
    """Title of the error; equal for all errors of this code."""
    status: int
    """The HTTP status."""
    detail: str
    """Description of this occurrence, for users."""
    code: str
    """Stable code of the error catalogue."""
    request_id: str
    """Identifies the request in the server's log."""
    retryable: bool
    """True if the same request may succeed later."""
    errors: List[FieldError]
    """All bad fields; empty for errors that do not concern fields."""


class ModelSpec(TypedDict, total=False):
    """The model and the source of its initial weights. Set exactly one of `preset` and `config`.
    Both are optional with `init_from.model` or `init_from.uri`, whose configuration is the default."""
    preset: PresetName
    config: ModelConfig
    init_from: InitFromSpec
    quantization: Quantization


class _JobSpecRequired(TypedDict):
    model: ModelSpec
    data: DataSpec



class JobSpec(_JobSpecRequired, total=False):
    """A training job. `model`, `data` and either `train.steps` or `train.epochs` are required, or
    `train.session` in place of steps. Every other field has a default."""
    name: Name
    project: ProjectName
    """Project of the job. The default is the project of the API key; any other name is refused."""
    labels: Labels
    notes: Notes
    priority: Priority
    train: TrainSpec
    zero: ZeroSpec
    resources: ResourcesSpec
    checkpoint: CheckpointSpec
    limits: LimitsSpec
    retry: RetrySpec
    export: ExportSpec
    notify: NotifySpec
    integrations: Integrations
    deepspeed_config: DeepspeedConfig


class PlannedInitFolder(TypedDict):
    """The folder that becomes the initial model."""
    uri: SourceUri


class _PlannedModelRequired(TypedDict):
    config: ResolvedModelConfig
    preset: Optional[PresetName]
    init_from: Optional[Union[ResolvedInitCheckpoint, ResolvedInitModel, PlannedInitFolder]]



class PlannedModel(_PlannedModelRequired, total=False):
    """As in the document of a job, but with the `uri` of a folder that has not been copied. Its
    `config.json` was read; its weights were not."""
    quantization: Quantization
    base: ResolvedBase


class _PlannedDataRequired(TypedDict):
    chat_template: Optional[str]
    """Jinja template that renders the messages of a chat as text. `null`: the template of the
    initial checkpoint's job or of the tokenizer's model, otherwise ChatML. The resolved document
    has the template, or `null` for a dataset without chats."""
    parse_special_tokens: bool
    """`true` reads special tokens such as `<|im_end|>` in texts, messages and prompts as those
    tokens, for texts that a template rendered before the upload. `false` reads them as plain text,
    so that a text cannot end a turn."""
    template_date: Optional[str]
    """Day that `strftime_now` of the template returns, at 00:00 UTC. `null`: the day (UTC) on which
    the job is created, or that of the initial checkpoint's job if the template is the same."""
    packing: Literal["split", "whole", "fit"]
    """`split` concatenates documents and cuts every `sequence_length` tokens. `whole` fills each
    sequence with whole documents in order and padding, and cuts only longer documents. `fit`
    combines whole documents by best fit, for the least padding. The default is `whole` for
    `format=jsonl`, otherwise `split`. Preferences are `whole`, with one completion per sequence."""
    validation_fraction: float
    """Share of the documents, at least one, that `seed` selects for validation. Of preferences it
    is a share of the units, and of a single document a share of its sequences. Of a `mixture` it is
    a share of each dataset."""
    seed: Seed
    """Seed of the order of the samples and of the validation split."""



class PlannedData(_PlannedDataRequired, total=False):
    """As in the document of a job, but with `uri` and `format` of an object that has not been
    copied. `tokenizer` is absent if it would be that of a model that is copied first;
    `chat_template` is then incomplete."""
    dataset: DatasetId
    mixture: List[MixtureEntrySpec]
    """Several datasets of one format that are trained on together. Without weights every dataset is
    read once in an epoch."""
    uri: SourceUri
    """An object in a bucket that the operator allows, or a file on the Hub; the key needs the scope
    `datasets`. The server copies it, and the resolved document names the dataset."""
    format: DatasetFormat
    """Format of the object that `uri` names; `text` by default. A dataset has its own format."""
    tokenizer: Optional[str]
    """`bytes` (one token per byte), the id of a model with a `tokenizer.json`, or the URI of a
    `tokenizer.json` in a bucket that the operator allows or on the Hub. A URI needs a key with the
    scope `models`. `null`: the tokenizer of the initial model or of the initial checkpoint's job,
    otherwise `bytes`. A dataset of `format=tokens` has none."""
    chat: ResolvedChat


class _PlannedJobSpecRequired(TypedDict):
    name: str
    """Display name; empty when absent."""
    project: ProjectName
    labels: Labels
    notes: Notes
    priority: Priority
    model: PlannedModel
    data: PlannedData
    train: PlannedTrain
    zero: ResolvedZero
    resources: ResolvedResources
    checkpoint: ResolvedCheckpoint
    limits: ResolvedLimits
    retry: ResolvedRetry
    export: ResolvedExport
    notify: ResolvedNotify
    integrations: Integrations



class PlannedJobSpec(_PlannedJobSpecRequired, total=False):
    """The document that the job would have. `data`, `train.evaluation.datasets` and
    `model.init_from` name objects and a folder by `uri` if the creation of the job would copy them
    first; their content is checked then. `data.tokenizer` may name an object as well; its content
    is already checked."""
    sources: Sources


class RankMemory(TypedDict):
    """Bytes of the rank that needs the most, by part; ranks differ by at most one block of 4096
    elements."""
    params: int
    """Parameters, in `train.precision` or quantized."""
    shared_params: int
    """Frozen parameters of which all CPU ranks of one worker have one copy; n ranks need this once
    and the rest of `total` n times."""
    grad_shard: int
    """Sums of the gradients of the shard that the rank owns, in `zero.grad_accum_dtype`."""
    master: int
    """Master weights of the shard that the rank owns, in `zero.master_dtype`."""
    moments: int
    """All other optimizer states of the shard that the rank owns, in fp32."""
    lane_accumulator: int
    """Stage 1: the sum of the gradients of one lane of several leaves, for all trained parameters."""
    staging: int
    """Gradient buckets in transfer between ranks."""
    activations: int
    """Activations, gradients before they enter a bucket, and workspace. In a session also the KV
    cache and activations of `sample`."""
    packed_weights: int
    """Copies of the weights in the layout of the matrix products. In a session those of `sample`,
    too."""
    total: int
    """Sum of all parts."""
    host: int
    """With `zero.offload: cpu` on a GPU: additional bytes in host memory."""


class WorldEstimate(TypedDict):
    """Memory of one rank of a world."""
    world_size: int
    """Number of ranks."""
    bytes: RankMemory


class Estimate(TypedDict):
    """Memory of a job."""
    num_params: int
    """Number of elements of all parameters."""
    device: EstimateDevice
    threads: int
    """Threads per rank."""
    instruction_set: InstructionSet
    data: List[WorldEstimate]
    """One entry for each number of ranks."""


class WorkDuration(TypedDict):
    """Duration of the training on the preferred number of ranks, if each rank has the throughput of
    an earlier job. Of the newest 100 jobs of the pool and project, it is the job whose model is
    nearest in cost. `null` without a measurement at this precision."""
    seconds: float
    """Excludes preparing data, saving and exporting."""
    tokens_per_second: float
    """Useful tokens per second of all ranks together."""
    ranks: int
    """The preferred number of ranks."""
    cost: Optional[float]
    """Cost of the ranks for these seconds, at what a rank of `measured_by` has cost; `null` if that
    is unknown."""
    measured_by: JobId


class Work(TypedDict):
    """Amount of data that the steps of a job read, and their duration."""
    sequences: Optional[int]
    """`steps` times `global_batch_size`, and times two for pairs of completions; `null` while the
    steps are unknown."""
    tokens: Optional[int]
    """Useful tokens: `sequences` times `sequence_length`, without the share of padding where an
    earlier job prepared the same data."""
    sequences_per_epoch: Optional[int]
    """Sequences of the training data; `null` while only their tokens determine the number, which
    the first job with these data computes. For preferences the number in the dataset's record,
    before those without targets are left out."""
    epochs: Optional[float]
    """Number of times that each sequence is read."""
    duration: Optional[WorkDuration]


class DryRun(TypedDict):
    """The resulting job and its needs."""
    spec: PlannedJobSpec
    estimate: Estimate
    work: Work
    warnings: List[Warning]
    """Fields of the document without effect, and texts at the beginning of the data that do not
    teach what their writer probably intends (those of `POST /v1/data-preview`). Content that the
    server has not copied yet is not read."""


class _EstimateRequestRequired(TypedDict):
    spec: JobSpec



class EstimateRequest(_EstimateRequestRequired, total=False):
    """The job, and the hardware to estimate for."""
    world_sizes: List[int]
    """Numbers of ranks; by default all that `resources.ranks` allows."""
    device: EstimateDevice
    threads: int
    """Threads per rank."""
    instruction_set: InstructionSet


class _DataPreviewRequestRequired(TypedDict):
    spec: JobSpec



class DataPreviewRequest(_DataPreviewRequestRequired, total=False):
    """A job, and how much of its data to show."""
    texts: int
    """Number of texts to return."""


class DataRead(TypedDict):
    """Counts of what was read: at most the first 256 KiB and the rest of a line. The datasets of a
    mixture share the 256 KiB."""
    share: float
    """Share of the data's bytes that was read."""
    bytes: int
    """Bytes that were read."""
    texts: int
    """Texts in them: documents; of preferences, completions with their prompts."""
    tokens: int
    """Tokens of the texts."""
    targets: int
    """Tokens that are learned."""
    long_texts: int
    """Unless `packing` is `split`: texts that do not fit into one sequence. Documents are divided,
    and completions are cut off. Otherwise 0."""


class PreviewPart(TypedDict):
    """A part of a text."""
    text: str
    learned: bool


class _PreviewTextRequired(TypedDict):
    parts: List[PreviewPart]
    """The text in order, in parts of which the whole is learned, or nothing."""
    is_shortened: bool
    """The text goes on after its parts."""
    tokens: int
    """Tokens of the whole text."""
    targets: int
    """Those of them that are learned."""



class PreviewText(_PreviewTextRequired, total=False):
    """A text that is encoded, with the chat template applied."""
    dataset: DatasetId
    """Dataset of the text; only with `data.mixture`."""


class DataPreview(TypedDict):
    """The beginning of a dataset, or of each dataset of a mixture, as a job reads it. `read` is
    `null`, and there are no texts, for data that has none (`tokens`), and for an object that the
    server has not copied."""
    read: Optional[DataRead]
    texts: List[PreviewText]
    """The first texts."""
    warnings: List[Warning]
    """Texts that were read and do not teach what their writer probably intends."""


class _GradeRequestRequired(TypedDict):
    grader: Grader
    output_text: str
    """Answer of a model."""



class GradeRequest(_GradeRequestRequired, total=False):
    """A grader, and what it grades."""
    item: Dict[str, Any]
    """Fields of the line of data."""


class GradeError(TypedDict):
    """Failure of a grader."""
    grader: str
    """Name of the grader, or of the part in the formula."""
    code: Literal["template_variable_missing", "template_text_too_long", "sample_not_json", "formula_not_finite", "texts_too_complex", "model_unavailable", "model_refused", "model_answer_invalid", "python_unavailable", "python_source_invalid", "python_failed", "python_forbidden", "python_result_invalid", "python_time_limit", "python_memory_limit", "python_output_limit", "python_died", "webhook_unavailable", "webhook_refused", "webhook_answer_invalid"]
    """Stable code of the failure."""
    message: str
    """Description of the failure, for users."""


class Grade(TypedDict):
    """The grade of an answer."""
    reward: float
    """Score of the grader; 0 if it failed."""
    scores: Dict[str, float]
    """Scores by the name of the grader, or of each part in a formula; 0 for a part that failed."""
    errors: List[GradeError]
    """Graders that failed."""
    seconds: float
    """Time of the grade."""
    tokens: Dict[str, int]
    """Tokens that models used, by model."""


class GraderValidateRequest(TypedDict):
    """A grader to check."""
    grader: Grader


class CheckedGrader(TypedDict):
    """A grader without problems."""
    grader: Grader


class RanksPatch(TypedDict, total=False):
    """Number of ranks of the job; `min` ≤ `preferred` ≤ `max` ≤ leaves, and with ZeRO stage 1 `max`
    ≤ lanes."""
    min: int
    """Minimum number of ranks."""
    max: int
    """Maximum number of ranks."""
    preferred: int
    """Requested number of ranks."""


class LimitsPatch(TypedDict, total=False):
    """Limits of the job; `null` removes a limit."""
    max_runtime: Optional[int]
    """Maximum time in seconds for which the job holds slots."""
    max_wait: Optional[int]
    """Maximum time in seconds that the job waits for slots without interruption."""
    max_cost: Optional[float]
    """Maximum cost of its slots."""
    on_limit: Literal["pause", "cancel"]
    """Action at a limit."""


class JobPatch(TypedDict, total=False):
    """Fields of a job to change; at least one."""
    name: Name
    priority: int
    """Jobs of a higher priority come first."""
    labels: Dict[str, Optional[str]]
    """Labels to set; `null` removes a label."""
    notes: Notes
    resources: JobPatchResources
    """Placement of the job. The pool cannot be changed."""
    limits: LimitsPatch
    train: JobPatchTrain
    """Changeable fields of the training."""


class JobPatchResources(TypedDict):
    """Placement of the job. The pool cannot be changed."""
    ranks: RanksPatch


class JobPatchTrain(TypedDict):
    """Changeable fields of the training."""
    overrides: Overrides


class ResumeRequest(TypedDict, total=False):
    """Options of a resume."""
    ranks: int
    """Number of ranks; by default the previous number."""


class ForkRequest(TypedDict, total=False):
    """Source and changes of a fork."""
    from_checkpoint: CheckpointId
    """Checkpoint of the job; by default its newest."""
    overrides: Dict[str, Any]
    """A JSON merge patch (RFC 7396) of the job document; `model` cannot change."""


class ResizeRequest(TypedDict):
    """Requested number of ranks."""
    ranks: int
    """Number of ranks."""


class Generation(TypedDict):
    """The period in which ranks of an attempt trained, between two changes of their number or a
    failure."""
    world_size: int
    """Number of ranks."""
    started_at: Time
    ended_at: Optional[Time]
    """`null` while the ranks train."""


class Attempt(TypedDict):
    """The period from a worker's claim of the job to its end."""
    epoch: int
    """Epoch of the claim; an attempt has several when other workers took it over."""
    attempt: int
    """Number of the attempt."""
    workers: List[str]
    """Workers of its newest generation of ranks, the leader first."""
    generations: List[Generation]
    """Its newest generations of ranks that trained, the oldest first."""
    started_at: Time
    ended_at: Optional[Time]
    outcome: Literal["running", "succeeded", "failed", "cancelled", "paused", "requeued", "lost"]
    """`requeued`: the worker returned the job to its queue; `lost`: the worker's lease expired."""
    reason: Optional[str]
    """Reason for its end, as in the job's history."""
    root_cause: Optional[RootCause]


class AttemptPage(TypedDict):
    """A page of attempts."""
    data: List[Attempt]
    next_cursor: NextCursor


class GivenDocument(TypedDict):
    """The document that created a job."""
    given: Optional[Dict[str, Any]]
    """The document as the request gave it, a `JobSpec`; `null` if none is stored."""


class JobEvent(TypedDict):
    """An event of a job."""
    seq: Seq
    position: StreamPosition
    kind: Literal["event"]
    """Distinguishes events from metrics and log lines."""
    type: str
    """Type of the event, an open set: `job.created`, `job.state`, `attempt.started`,
    `checkpoint.committed`, `rank.lost`, …"""
    at: Time
    data: Dict[str, Any]
    """Details; the fields depend on the type."""


class EventPage(TypedDict):
    """A page of events."""
    data: List[JobEvent]
    next_cursor: NextCursor


class TrustRatios(TypedDict):
    """Trust ratios of a group of parameters."""
    min: float
    """The smallest ratio."""
    median: float
    """The median ratio."""
    max: float
    """The largest ratio."""


class StepSeconds(TypedDict):
    """Wall time of a step on rank 0 by phase, in seconds. Exchange and gathering run concurrently
    with the other phases; their values are the times that the step waited for them."""
    total: float
    """The whole step."""
    data: float
    """Reading sequences."""
    forward: float
    """Forward passes."""
    backward: float
    """Backward passes."""
    exchange: float
    """Waiting for gradients and statistics of other ranks."""
    optimizer: float
    """Statistics, and the update of the shard that the rank owns."""
    gather: float
    """Waiting for updated parameters of other ranks."""


class _SystemUseRequired(TypedDict):
    cpu: List[float]
    """CPU seconds per second: the mean number of busy cores."""
    memory_bytes: List[int]
    """Memory of the rank, as in the metric `memory_bytes`, at the time of the measurement."""
    sent_bytes: List[float]
    """Bytes per second that the rank sent to other ranks."""



class SystemUse(_SystemUseRequired, total=False):
    """What the processes of the first 16 ranks used since the previous measurement; each list is by
    rank. Present in one step every five seconds at the most."""
    gpu: List[float]
    """Share of time in which some kernel ran on the GPU of the rank. Absent on CPUs, and where a
    driver does not measure it."""


class _JobMetricRequired(TypedDict):
    seq: Seq
    position: StreamPosition
    kind: Literal["metric"]
    """Distinguishes metrics from events and log lines."""
    at: Time
    step: int
    """Number of completed steps."""
    loss: Optional[float]
    """Mean over the target tokens, in nats, or with a preference `objective` over its units,
    without `aux_loss`; `null` when not finite."""
    seconds: StepSeconds
    grad_norm: Optional[float]
    """Global gradient norm before clipping; `null` when not finite."""
    lr: float
    """Learning rate of the step."""
    tokens: int
    """Useful tokens processed so far: tokens of sequences, without padding. A step counts the mean
    of the data."""
    tokens_per_second: Optional[float]
    """Useful tokens of a step divided by the duration of this step."""
    world_size: int
    """Number of ranks that executed the step."""
    memory_bytes: int
    """The most memory that one of the ranks used since the previous step, or since its start, as
    measured every two seconds and after the first step. On CPUs, the resident set of its process.
    On GPUs, the most that it has allocated on its GPU, with `zero.offload` also in the memory of
    its host."""
    epoch: int
    """Epoch of the attempt that executed the step."""



class JobMetric(_JobMetricRequired, total=False):
    """Metrics of one optimizer step."""
    aux_loss: Optional[float]
    """The load balancing loss of the model's routers, times `router_aux_loss_coef`, mean over
    micro-batches, without padding. The training minimizes `loss` + `aux_loss`. Present only for
    models with routers and a factor above 0; `null` when not finite."""
    preference: PreferenceMetrics
    """Present only with a preference `objective`."""
    reinforcement: Dict[str, float]
    """Present only with the objective `grpo`, for the samples that the step uses. `reward`,
    `tokens` and `score/` with the name of a grader are means. `reward_std` is the standard
    deviation of the rewards. `entropy` is the mean of −log p over the tokens. Shares:
    `truncated_share` of the samples, `failed_share` of those for which a grader failed, and
    `equal_groups` of the groups whose rewards are equal, which teach nothing. `ratio_mean`,
    `clipped_share` and `kl` are those of the passes of the step (`PassResult`)."""
    trust_ratios: List[TrustRatios]
    """`lamb`: the trust ratios by which the step multiplied the updates of parameters, one entry
    per group of parameters with the same learning rate and weight decay. For experts that are
    spread over ranks, those of rank 0."""
    eval_losses: Dict[str, Optional[float]]
    """Mean losses of the evaluation after the step by the name of their data, in nats per token:
    `validation` and the names of `train.evaluation.datasets`; `null` when not finite. With the
    objective `grpo` they are mean rewards. Present only for steps with an evaluation, with `grpo`
    in the last item of such a step."""
    loss_scale: float
    """Loss scale of the step; 1 without loss scaling."""
    skipped_steps: int
    """Steps so far that were skipped because their gradients were not finite; they changed nothing."""
    system: SystemUse


class MetricPage(TypedDict):
    """A page of metrics."""
    data: List[JobMetric]
    next_cursor: NextCursor


class JobLog(TypedDict):
    """A line written by a rank, or by its worker about it."""
    seq: Seq
    position: StreamPosition
    kind: Literal["log"]
    """Distinguishes log lines from events and metrics."""
    at: Time
    rank: Optional[int]
    """Rank of the line; `null` for lines about the whole job."""
    stream: Literal["stdout", "stderr", "worker"]
    """Source of the line: `stdout` or `stderr` of the rank, where `stderr` has warnings and errors;
    `worker` for messages of its worker."""
    message: str
    """The line, without control characters except tabs."""
    truncated: bool
    """The line was longer and has been truncated."""
    dropped: int
    """Number of dropped lines of the rank before this one; above 0 only in entries that report
    dropped lines."""
    epoch: int
    """Epoch of the attempt that wrote it."""


class LogPage(TypedDict):
    """A page of log lines."""
    data: List[JobLog]
    next_cursor: NextCursor


class _CheckpointRequired(TypedDict):
    id: CheckpointId
    job_id: JobId
    step: int
    """Completed steps at the time of the checkpoint."""
    world_size: int
    """Number of ranks that wrote it."""
    state_digest: StateDigest
    bytes: int
    """Size of all its shards."""
    committed_at: Time
    pinned: bool
    """The retention rule never removes a pinned checkpoint."""
    damaged: bool
    """The job could not load this checkpoint and resumed from the previous one. It never becomes
    the newest again, and is removed once there is another one, unless it is pinned."""
    prefix: str
    """Prefix of its objects in the object store."""



class Checkpoint(_CheckpointRequired, total=False):
    """A committed checkpoint. A job can resume from it on any number of ranks."""
    eval_losses: Dict[str, float]
    """Losses of the evaluation after this step by the name of their data, in nats per token:
    `validation` and the names of `train.evaluation.datasets`. Losses that are not finite are left
    out; present only for steps with an evaluation."""
    best_step: int
    """Step of the newest evaluation until then that improved; present only with
    `train.early_stopping`. The checkpoint of that step is kept."""
    made_from: CheckpointMadeFrom
    """The checkpoint that this one was made from by changing a tensor; absent for one that ranks
    saved."""


class CheckpointMadeFrom(TypedDict):
    """The checkpoint that this one was made from by changing a tensor; absent for one that ranks
    saved."""
    checkpoint_id: CheckpointId
    edit_id: EditId
    tensor: TensorName
    tensor_state: TensorState


class CheckpointPage(TypedDict):
    """A page of checkpoints."""
    data: List[Checkpoint]
    next_cursor: NextCursor


class Share(TypedDict):
    """A share without its token."""
    id: ShareId
    job_id: JobId
    description: ShareDescription
    created_at: Time
    expires_at: Time


class ShareList(TypedDict):
    """All shares of a job that have not ended, newest first."""
    data: List[Share]


class ShareRequest(TypedDict, total=False):
    """Fields of a new share."""
    expires_in_seconds: int
    """Seconds after which the share ends; at most 90 days, by default 7 days."""
    description: ShareDescription


class NewShare(TypedDict):
    """A share with its token, which is not returned again."""
    id: ShareId
    job_id: JobId
    description: ShareDescription
    created_at: Time
    expires_at: Time
    token: str
    """The prefix `zf_share_` and 256 random bits; a bearer token."""


class CallSummary(TypedDict):
    """A call of the log."""
    number: CallNumber
    type: CallType
    state: CallState
    state_digest: Optional[StateDigest]
    """Digest of the state after an `optim_step` or a `load_state`; null for other calls and without
    a result."""


class CallPage(TypedDict):
    """A page of calls, newest first."""
    data: List[CallSummary]
    next_cursor: NextCursor


class _PassLossRequired(TypedDict):
    type: Literal["cross_entropy", "importance_sampling", "ppo", "cispo", "dpo"]
    """The loss. `importance_sampling`, `ppo` and `cispo` read `log_probs` and `advantages` of each
    row. `dpo` reads `log_probs`; row 2i is the chosen one and row 2i + 1 the rejected one of a
    pair."""



class PassLoss(_PassLossRequired, total=False):
    """Loss of a pass, a sum over targets t, in `dpo` over pairs of rows. A target has the weight
    w_t, the log-probability log p_t, the reference ρ_t (`log_probs` of a row) and the advantage
    A_t; r_t = exp(log p_t − ρ_t). `cross_entropy`: Σ −w_t · log p_t. `importance_sampling`: −Σ r_t
    · A_t. `ppo`: −Σ min(r_t · A_t, clip(r_t, 1 − `clip_low`, 1 + `clip_high`) · A_t). `cispo`: −Σ
    stop_gradient(clip(r_t, 1 − `clip_low`, 1 + `clip_high`)) · A_t · log p_t. `dpo`: −Σ log
    σ(`beta` · ((Σ log p − Σ ρ) of the chosen row − (Σ log p − Σ ρ) of the rejected row)). A field
    of the loss or a list of a row that the loss does not read is refused."""
    clip_low: float
    """`ppo`, `cispo`: distance of the lower bound of the ratio from 1; 0.2 by default."""
    clip_high: float
    """`ppo`, `cispo`: distance of the upper bound of the ratio from 1; 0.2 by default."""
    beta: float
    """`dpo`: factor of the rewards, above 0; 0.1 by default. `importance_sampling`, `ppo`, `cispo`:
    factor of a penalty of the KL divergence from the base, the model without its adapter; 0 by
    default. With d_t = log b_t − log p_t the loss has the additional sum Σ `beta` · w_t · r_t ·
    (exp(d_t) − d_t − 1)."""


class _RowRequired(TypedDict):
    tokens: CallTokens
    targets: List[int]
    """The token that each position predicts; −100 for a position without a target."""



class Row(_RowRequired, total=False):
    """One sequence, at most `train.sequence_length` tokens. All lists have the same length.
    `targets` are the tokens to predict: usually `tokens` shifted by one."""
    weights: RowNumbers
    """Weight of each target, of `cross_entropy` and of a penalty; 1 by default."""
    log_probs: RowNumbers
    """Log-probability of each target under the sampling or reference model."""
    advantages: RowNumbers
    """Advantage of each target."""


class _PassCallRequired(TypedDict):
    type: Literal["forward_backward", "forward"]
    """Kind of call."""
    loss: PassLoss
    rows: List[Row]
    """Rows of the pass, at most `train.global_batch_size`, with at most 2,097,152 tokens together."""



class PassCall(_PassCallRequired, total=False):
    """Loss of rows. `forward_backward` adds the gradients of the summed loss to those of the step;
    `forward` leaves the gradients as they are."""
    request: CallRequest


class _OptimStepCallRequired(TypedDict):
    type: Literal["optim_step"]
    """Kind of call."""



class OptimStepCall(_OptimStepCallRequired, total=False):
    """Updates the weights with the sum of the gradients since the last update. Fields that are
    absent are those of `train.optimizer` and `train.gradient_clipping`."""
    request: CallRequest
    lr: float
    """Learning rate."""
    betas: List[float]
    """Decay rates of the moments, each in [0, 1)."""
    eps: float
    """Added to the root of the second moment."""
    weight_decay: float
    """Weight decay of matrices."""
    gradient_clipping: float
    """Maximum norm of the summed gradients; 0 disables clipping."""


class _StoredOptimStepCallRequired(TypedDict):
    type: Literal["optim_step"]
    """Kind of call."""
    lr: float
    """Learning rate."""
    betas: List[float]
    """Decay rates of the moments, each in [0, 1)."""
    eps: float
    """Added to the root of the second moment."""
    weight_decay: float
    """Weight decay of matrices."""
    gradient_clipping: float
    """Maximum norm of the summed gradients; 0 disables clipping."""



class StoredOptimStepCall(_StoredOptimStepCallRequired, total=False):
    """An update, with every field."""
    request: CallRequest


class _SampleCallRequired(TypedDict):
    type: Literal["sample"]
    """Kind of call."""
    prompts: List[CallTokens]
    """Tokens of each prompt."""
    max_tokens: int
    """Maximum number of generated tokens."""



class SampleCall(_SampleCallRequired, total=False):
    """Tokens that the current weights generate after each prompt. A prompt and its tokens together
    have at most `train.sequence_length` tokens. `prompts` × `n` is at most 1024, and with ×
    `max_tokens` at most 1,048,576."""
    request: CallRequest
    n: int
    """Number of samples of each prompt."""
    temperature: float
    """Sampling temperature; 0 selects the most likely token."""
    top_p: float
    """Samples among the most likely tokens with this total probability."""
    top_k: int
    """Samples among the k most likely tokens; 0 keeps all."""
    seed: Seed
    stop_tokens: List[int]
    """Tokens that end a sample, which contains the token."""
    stop_texts: List[str]
    """Texts that end a sample. The sample ends with the token that completes one. Special tokens
    have no text."""


class _StoredSampleCallRequired(TypedDict):
    type: Literal["sample"]
    """Kind of call."""
    prompts: List[CallTokens]
    """Tokens of each prompt."""
    n: int
    """Number of samples of each prompt."""
    max_tokens: int
    """Maximum number of generated tokens."""
    temperature: float
    """Sampling temperature; 0 selects the most likely token."""
    top_p: float
    """Samples among the most likely tokens with this total probability."""
    top_k: int
    """Samples among the k most likely tokens; 0 keeps all."""
    seed: Seed
    stop_tokens: List[int]
    """Tokens that end a sample, which contains the token."""
    stop_texts: List[str]
    """Texts that end a sample. The sample ends with the token that completes one. Special tokens
    have no text."""



class StoredSampleCall(_StoredSampleCallRequired, total=False):
    """A request for samples, with every field."""
    request: CallRequest


class _SaveStateCallRequired(TypedDict):
    type: Literal["save_state"]
    """Kind of call."""



class SaveStateCall(_SaveStateCallRequired, total=False):
    """Saves a checkpoint. Gradients that no `optim_step` has used are not part of it, so it is
    refused with them."""
    request: CallRequest


class _StoredLoadStateCallRequired(TypedDict):
    type: Literal["load_state"]
    """Kind of call."""
    checkpoint: CheckpointId
    optimizer: bool
    """Whether moments and counters are restored."""
    prefix: str
    """Prefix of the checkpoint's objects in the object store."""



class StoredLoadStateCall(_StoredLoadStateCallRequired, total=False):
    """A load, with every field and the folder of the checkpoint."""
    request: CallRequest


class _FinishCallRequired(TypedDict):
    type: Literal["finish"]
    """Kind of call."""



class FinishCall(_FinishCallRequired, total=False):
    """Saves the state and ends the session; the job succeeds. No call may follow."""
    request: CallRequest


class _LoadStateCallRequired(TypedDict):
    type: Literal["load_state"]
    """Kind of call."""
    checkpoint: CheckpointId



class LoadStateCall(_LoadStateCallRequired, total=False):
    """Continues from a checkpoint of the session. Gradients of the step are dropped."""
    request: CallRequest
    optimizer: bool
    """`true` restores moments and counters too, as if the session had never left the checkpoint.
    `false` restores the weights, and the optimizer starts fresh."""


class CallReceipt(TypedDict):
    """A stored call."""
    number: CallNumber
    type: CallType
    state: CallState


class RolloutSample(TypedDict):
    """A sample and its reward."""
    text: str
    """Text of the sample."""
    tokens: int
    """Number of tokens that are learned."""
    truncated: bool
    """True: the sample has `max_tokens` and no end."""
    reward: float
    """The reward."""
    scores: Dict[str, float]
    """Score of each grader by its name."""
    errors: List[GradeError]
    """Graders that failed; their score is 0."""


class RolloutGroup(TypedDict):
    """A prompt with its samples."""
    line: int
    """Line of the dataset."""
    prompt: str
    """Text of the prompt."""
    samples: List[RolloutSample]
    """Samples of the prompt."""


class Rollout(TypedDict):
    """The samples of a step of a job with the objective `grpo`, and their rewards."""
    step: int
    """First step that uses the samples."""
    call: CallNumber
    """Number of the call that drew them."""
    groups: List[RolloutGroup]
    """The prompts with their samples."""


class PassResult(TypedDict):
    """Result of a pass."""
    loss: Optional[float]
    """Sum of the losses; null if it is not finite."""
    num_targets: int
    """Number of targets."""
    log_probs: List[List[Optional[float]]]
    """For each row, the log-probability of each target; null where a position has no target or no
    finite value."""
    metrics: Dict[str, Optional[float]]
    """Means of the loss's own quantities; null for a mean that is not finite.
    `importance_sampling`, `ppo`, `cispo`: `ratio_mean`, with a clip `clipped_share`, and with a
    penalty `kl`. `dpo`: `accuracy`, `margin`, `reward_chosen`, `reward_rejected`."""


class OptimStepResult(TypedDict):
    """Result of an update."""
    step: int
    """Number of updates and loads so far."""
    grad_norm: Optional[float]
    """Norm of the summed gradients before clipping; null if it is not finite."""
    lr: float
    """Learning rate of the update."""
    finite: bool
    """False if a gradient was not finite: the update was skipped."""
    state_digest: StateDigest


class SampledRow(TypedDict):
    """A sample."""
    tokens: List[int]
    """Generated tokens."""
    log_probs: List[Optional[float]]
    """Log-probability of each token."""
    finish: Literal["end", "length"]
    """`end`: a stop token; `length`: `max_tokens`."""


class SampleResult(TypedDict):
    """Result of `sample`."""
    samples: List[SampledRow]
    """Samples in the order of the prompts, `n` of each."""


class SaveStateResult(TypedDict):
    """Result of `save_state` and `finish`."""
    checkpoint: CheckpointId
    step: int
    """Number of updates and loads that the checkpoint includes."""


class LoadStateResult(TypedDict):
    """Result of `load_state`."""
    step: int
    """Number of updates and loads so far."""
    state_digest: StateDigest


class CallFailure(TypedDict):
    """Result of a call that could not be done. It changed nothing, and the session goes on."""
    error: CallFailureError
    """The error."""


class CallFailureError(TypedDict):
    """The error."""
    code: str
    """Stable code of the error, such as `no_gradients`."""
    message: str
    """Message for users."""


class _CallAnswerRequired(TypedDict):
    number: CallNumber
    state: CallState



class CallAnswer(_CallAnswerRequired, total=False):
    """A call and its result, if it exists."""
    result: CallResult


class SweepRange(TypedDict, total=False):
    """Values of a field. Set either `values`, or `min` and `max`."""
    values: List[SweepValue]
    """All values."""
    min: float
    """Lower bound of drawn values."""
    max: float
    """Upper bound of drawn values."""
    scale: Literal["linear", "log", "integer"]
    """Distribution between `min` and `max`: uniform, uniform in the logarithm, or uniform over
    integers. Drawn numbers have four significant digits."""


class SweepRung(TypedDict):
    """A step at which runs are compared."""
    step: Optional[int]
    """Number of completed steps; `null` for the end of the runs."""
    runs: int
    """Maximum number of runs that train up to this step."""


class SweepProblem(TypedDict):
    """An error."""
    code: str
    """Stable code of the error catalogue."""
    message: str
    """Message for users."""


class SweepRun(TypedDict):
    """A run of a sweep."""
    job_id: JobId
    """Its job, which exists from the state `running` on."""
    name: str
    """Name of the job: the name of the sweep and the values."""
    values: Dict[str, SweepValue]
    """Values by field."""
    state: SweepRunState
    rung: int
    """Index of the rung that it trains for."""
    evaluations: List[SweepRunEvaluationsItem]
    """Values of `metric` at the rungs; with `early_stopping` the last one is the best of the run."""
    failure: Optional[SweepProblem]
    """Why its job failed or could not be created."""


class SweepRunEvaluationsItem(TypedDict):
    step: int
    """Number of completed steps."""
    value: Optional[float]
    """Value in nats per token; `null` when not finite or unknown."""


class Sweep(TypedDict):
    """Jobs of one document with different values of some fields."""
    id: SweepId
    name: Name
    project: ProjectName
    state: SweepState
    method: SweepMethod
    seed: Seed
    metric: EvaluationMetric
    max_concurrent: int
    """Number of runs that train or wait for slots at the same time."""
    space: Dict[str, SweepRange]
    """Values of the varied fields."""
    spec: JobSpec
    rungs: List[SweepRung]
    """Steps at which runs are compared; one entry, the end, without `successive_halving`."""
    runs: List[SweepRun]
    """Its runs. Their jobs have the label `sweep` with the id of the sweep."""
    best: Optional[JobId]
    """Job of the run with the lowest value at the latest rung so far; `null` before the first
    value."""
    problem: Optional[SweepProblem]
    """Why no run can begin at present, such as a quota; the sweep tries again."""
    created_at: Time
    ended_at: Optional[Time]


class SweepPage(TypedDict):
    """A page of sweeps."""
    data: List[Sweep]
    next_cursor: NextCursor


class _SweepSpecRequired(TypedDict):
    spec: JobSpec
    """The document of all runs. It needs data to evaluate on."""
    space: Dict[str, SweepRange]
    """The fields to vary, by their dotted path in the document, such as `train.optimizer.lr`. A dot
    in a name is written `\\.`."""



class SweepSpec(_SweepSpecRequired, total=False):
    """A job document, the fields to vary, and how."""
    name: Name
    """Display name; by default that of the document."""
    method: SweepMethod
    runs: int
    """Number of runs to draw; for `random` and `successive_halving`. Without it
    `successive_halving` begins with the grid."""
    seed: Seed
    """Seed of the drawn values."""
    metric: EvaluationMetric
    """Metric that compares the runs; lower is better. By default that of `early_stopping`,
    otherwise the first one of the job."""
    min_steps: int
    """Steps of the first rung of `successive_halving`; by default `steps` / `factor`². Rungs are
    rounded up to an evaluation."""
    factor: int
    """Of `successive_halving`: one of `factor` runs continues after a rung, and each rung has
    `factor` times the steps."""
    max_concurrent: int
    """Number of runs that train or wait for slots at the same time."""


class SweepPlan(TypedDict):
    """The runs that a sweep would have."""
    metric: EvaluationMetric
    rungs: List[SweepRung]
    runs: List[SweepPlanRunsItem]


class SweepPlanRunsItem(TypedDict):
    name: str
    """Name of the job."""
    values: Dict[str, SweepValue]
    """Values by field."""


class CheckpointPatch(TypedDict):
    """Fields of a checkpoint to change."""
    pinned: bool
    """Exempts the checkpoint from the retention rule."""


class CheckpointVerdict(TypedDict):
    """Result of the verification of a checkpoint."""
    checkpoint_id: CheckpointId
    valid: bool
    """True if the checkpoint can be loaded."""
    bytes: int
    """Bytes of its shards that were compared and are correct."""
    problems: List[CheckpointVerdictProblemsItem]
    """Damaged objects; empty for a valid checkpoint."""


class CheckpointVerdictProblemsItem(TypedDict):
    object: str
    """Key of the object, relative to the checkpoint."""
    code: str
    """Code of the error catalogue for the damage."""
    message: str
    """Location of the damage in the object."""


class ChatFunctionCall(TypedDict):
    """A called function."""
    name: ToolName
    arguments: Union[str, Dict[str, Any]]
    """A JSON object, or its text."""


class _ChatToolCallRequired(TypedDict):
    function: ChatFunctionCall



class ChatToolCall(_ChatToolCallRequired, total=False):
    """A call of a tool in an earlier message."""
    id: str
    """Id of the call."""
    type: Literal["function"]
    """Kind of tool."""


class _ChatMessageRequired(TypedDict):
    role: str
    """Role of the author, as named by the template; `developer` is `system`."""



class ChatMessage(_ChatMessageRequired, total=False):
    """A message of a chat."""
    content: Optional[Union[str, List[ChatMessageContent2Item]]]
    """Text of the message, or a list of texts, which are joined. It may be null or absent beside
    `tool_calls`."""
    name: Optional[str]
    """Name of the author or the tool."""
    tool_calls: Optional[List[ChatToolCall]]
    """Calls of a message of the assistant."""
    function_call: Optional[ChatFunctionCall]
    """Former name of a single one of `tool_calls`; the role of its result is `function`."""
    tool_call_id: Optional[str]
    """The call that a message of the role `tool` answers."""
    reasoning_content: Optional[str]
    """Reasoning of a message of the assistant."""
    refusal: None
    """Part of answers of OpenAI's API, so that they can be sent back."""


class _ChatMessageContent2ItemRequired(TypedDict):
    type: str
    """Only `text` is supported."""



class ChatMessageContent2Item(_ChatMessageContent2ItemRequired, total=False):
    text: str
    """The text."""


class Tool(TypedDict):
    """A function that the model may call."""
    type: Literal["function"]
    """Kind of tool."""
    function: ToolFunction
    """The function."""


class _ToolFunctionRequired(TypedDict):
    name: ToolName



class ToolFunction(_ToolFunctionRequired, total=False):
    """The function."""
    description: str
    """What the function does."""
    parameters: Dict[str, Any]
    """Its arguments as a JSON schema."""
    strict: Optional[bool]
    """Chat templates get it."""


class NamedTool(TypedDict):
    """The function that an answer calls."""
    type: Literal["function"]
    """Kind of tool."""
    function: NamedToolFunction
    """The function."""


class NamedToolFunction(TypedDict):
    """The function."""
    name: ToolName


class ResponseFormat1(TypedDict):
    type: Literal["text", "json_object"]
    """text: any text; json_object: a JSON object."""


class ResponseFormat2(TypedDict):
    type: Literal["json_schema"]
    """A JSON object that satisfies a schema."""
    json_schema: ResponseFormat2JsonSchema
    """The schema."""


class _ResponseFormat2JsonSchemaRequired(TypedDict):
    schema: Dict[str, Any]
    """The JSON schema. Keywords that an answer cannot be held to are refused."""



class ResponseFormat2JsonSchema(_ResponseFormat2JsonSchemaRequired, total=False):
    """The schema."""
    name: str
    """A name; without effect."""
    description: str
    """A description; without effect."""
    strict: Optional[bool]
    """Without effect: every answer satisfies the schema."""


class SampleRequest(TypedDict, total=False):
    """A text to continue or a chat to answer, and the sampling options."""
    prompt: str
    """The text that the model continues."""
    messages: List[ChatMessage]
    """The chat that the model answers; requires `chat_template`, or a model that has one."""
    chat_template: str
    """Jinja template that renders `messages` in place of the model's own, as to compare a base
    model with its fine-tuned one."""
    tools: List[Tool]
    """Functions that the model may call. The chat template must render them."""
    tool_choice: Union[Literal["none", "auto", "required"], NamedTool]
    """auto: the model decides whether it calls `tools`; none: the template gets no tools; required:
    the answer is a call; or the function that it calls."""
    parallel_tool_calls: bool
    """Whether the model may call several tools at once; chat templates that know this variable get
    it."""
    response_format: ResponseFormat
    max_tokens: int
    """Maximum number of sampled tokens; the context of the model is another limit."""
    temperature: float
    """Sampling temperature. Below 1 likely tokens become more frequent, above 1 less frequent; 0
    selects the most likely token each time."""
    top_k: int
    """Samples among the k most likely tokens; 0 keeps all."""
    top_p: float
    """Samples among the fewest of these tokens whose probabilities sum to this share; 1 keeps all."""
    seed: Seed
    """The same request with the same seed has the same answer. Choice `index` has the seed plus its
    index."""
    presence_penalty: float
    """Subtracted from the logit of each token that the answer already has."""
    frequency_penalty: float
    """Subtracted from the logit of a token once for each time that the answer already has the
    token."""
    logit_bias: Dict[str, float]
    """Numbers that are added to the logits of tokens, by the number of the token."""
    stop: List[str]
    """Texts that end an answer; the answer ends before them."""
    n: int
    """Number of answers."""
    logprobs: Optional[int]
    """Reports the log-probability of each token, and of this many of the most likely ones. `n` ×
    `max_tokens` × (1 + `logprobs`) is at most 1,048,576."""
    stream: bool
    """The answer is a stream of server-sent events: `delta`, then `end` with the sample, or `error`
    with a problem. A `delta` has `index`, and more of `text`, `tool_calls` and `logprobs` of a
    choice. The first part of a call has `index`, `id`, `type` and the name, further ones have
    `index` and more of the arguments. The choices of `end` have `index` and `finish_reason`; the
    deltas had the rest."""
    weights: ExportWeights


class ToolCall(TypedDict):
    """A call of a tool."""
    id: str
    """Id of the call. The same request has the same ids."""
    type: Literal["function"]
    """Kind of tool."""
    function: ToolCallFunction
    """The called function."""


class ToolCallFunction(TypedDict):
    """The called function."""
    name: ToolName
    arguments: str
    """Its arguments as the JSON text that the model wrote. It ends early if the answer does."""


class SampledToken(TypedDict):
    """A token of an answer."""
    token: str
    """Its text; a part of a character appears as U+FFFD."""
    bytes: TokenBytes
    logprob: float
    """Natural logarithm of its probability under the model, before temperature, penalties and other
    options."""
    top: List[SampledTokenTopItem]
    """The most likely tokens in its place, the most likely one first."""


class SampledTokenTopItem(TypedDict):
    token: str
    """Its text."""
    bytes: TokenBytes
    logprob: float
    """Natural logarithm of its probability."""


class _SampleChoiceRequired(TypedDict):
    index: int
    """Number of the answer."""
    text: str
    """The sampled text, without the calls of tools."""
    finish_reason: Literal["stop", "length", "tool_calls"]
    """stop: the model or a text of `stop` ended the answer; length: it has `max_tokens` tokens, or
    the context is full; tool_calls: the model calls tools."""
    logprobs: List[SampledToken]
    """The tokens of the answer; empty without `logprobs`."""



class SampleChoice(_SampleChoiceRequired, total=False):
    """An answer."""
    tool_calls: List[ToolCall]
    """Calls of `tools`; absent without one."""


class SampleUsage(TypedDict):
    """Numbers of tokens."""
    prompt_tokens: int
    """Tokens of the prompt."""
    cached_tokens: int
    """Tokens of the prompt that an earlier request had left."""
    completion_tokens: int
    """Tokens of all answers, those that end them included."""


class Sample(TypedDict):
    """Text sampled from a model."""
    model: str
    """The checkpoint or the uploaded model."""
    step: Optional[int]
    """Completed steps at the time of the checkpoint; null for an uploaded model."""
    prompt: str
    """The prompt of the request, or the chat template's rendering of its messages."""
    choices: List[SampleChoice]
    usage: SampleUsage


class CheckpointTensor(TypedDict):
    """A parameter in a checkpoint."""
    name: TensorName
    shape: List[int]
    """Shape of each state."""
    dtype: Literal["fp32"]
    """Dtype of each state."""
    states: List[TensorState]
    """States that the checkpoint has. A frozen parameter has `master`; one of the base under
    adapters has none."""


class CheckpointTensorPage(TypedDict):
    """A page of tensors."""
    data: List[CheckpointTensor]
    next_cursor: NextCursor


class TensorEdit(TypedDict):
    """The change of a tensor, which makes a new checkpoint."""
    id: EditId
    made_from: CheckpointId
    tensor: TensorName
    tensor_state: TensorState
    state: Literal["queued", "running", "succeeded", "failed"]
    """State of the change."""
    checkpoint_id: Optional[CheckpointId]
    """The new checkpoint; null until the change has succeeded."""
    error: Optional[TensorEditError1]
    """Error of a failed change; null otherwise."""


class TensorEditError1(TypedDict):
    """An error."""
    code: str
    """Stable code of the error."""
    message: str
    """Message for users."""


class ExportRequest(TypedDict, total=False):
    """Format, dtype and weights of the export."""
    format: ExportFormat
    dtype: ExportDtype
    """Dtype of the weights; by default `export.dtype` of the job. A `deepspeed_universal` export is
    fp32."""
    weights: ExportWeights
    """Which weights; by default `export.weights` of the job. A `deepspeed_universal` export has
    those that are trained, without their average."""
    tensorboard: bool
    """`true` also writes the metrics of the training, up to the step of the checkpoint, as an event
    file of TensorBoard; by default `export.tensorboard` of the job. Exports with and without it
    have folders of their own."""


class _CheckpointExportRequired(TypedDict):
    checkpoint_id: CheckpointId
    job_id: JobId
    format: ExportFormat
    dtype: ExportDtype
    weights: ExportWeights
    tensorboard: bool
    """The folder has an event file of TensorBoard."""
    state: Literal["queued", "running", "succeeded", "failed"]
    """State of the export."""
    prefix: str
    """Folder of the files in the object store."""
    state_digest: Optional[str]
    """Digest of the checkpoint's state; null until the export has succeeded."""
    files: List[ExportFile]
    """Written files; empty until the export has succeeded."""
    error: Optional[CheckpointExportError1]
    """Error of a failed export; null otherwise."""



class CheckpointExport(_CheckpointExportRequired, total=False):
    """A checkpoint in another format."""
    base_quantization: Literal["nf4", "int8"]
    """How the matrices of the base under the adapters were stored in training, and what the weights
    were computed from (`model.quantization`); absent if in the training precision."""


class CheckpointExportError1(TypedDict):
    """An error."""
    code: str
    """Stable code of the error."""
    message: str
    """Message for users."""


class DownloadRequest(TypedDict, total=False):
    """Files to download."""
    format: Literal["safetensors", "peft", "peft_folded", "gguf", "gguf_lora", "deepspeed_universal"]
    """Format of the export; absent for the checkpoint."""
    dtype: ExportDtype
    """Dtype of the export; by default `export.dtype` of the job, and fp32 for a
    `deepspeed_universal`."""
    weights: ExportWeights
    """Weights of the export; by default `export.weights` of the job, and `trained` for a
    `deepspeed_universal`."""
    tensorboard: bool
    """The export with, or without, an event file of TensorBoard; by default `export.tensorboard` of
    the job."""
    expires_seconds: int
    """Validity of presigned URLs; the retention rule does not remove the checkpoint during this
    time."""
    via: Literal["auto", "api"]
    """`api`: returns paths of this API even where presigned URLs are possible, for clients that
    cannot reach the object store."""


class DownloadFile(TypedDict):
    """A file."""
    name: str
    """Name relative to the folder; slashes separate folders."""
    bytes: int
    """Size."""
    sha256: str
    """SHA-256 of the content."""
    url: str
    """A presigned URL, or a path of this API, which requires the API key."""


class Download(TypedDict):
    """Files and their download URLs."""
    checkpoint_id: CheckpointId
    format: Optional[ExportFormat]
    """Format of the export; null for the checkpoint."""
    dtype: Optional[ExportDtype]
    """Dtype of the export; null for the checkpoint."""
    weights: Optional[ExportWeights]
    """Weights of the export; null for the checkpoint."""
    tensorboard: Optional[bool]
    """The export has an event file of TensorBoard; null for the checkpoint."""
    state_digest: StateDigest
    expires_at: Optional[Time]
    """Time until which the URLs are valid; null for paths of this API."""
    files: List[DownloadFile]
    """All of its files."""


class DatasetSource(TypedDict):
    """The object from which a dataset was copied, at the time of the copy; absent or null for an
    upload. On the Hub the URI names the commit."""
    uri: SourceUri
    etag: str
    """ETag of the object; on the Hub, hash of the file."""
    bytes: int
    """Size of the object."""


class Dataset(TypedDict):
    """Training data."""
    id: DatasetId
    project: ProjectName
    name: Name
    description: Description
    format: DatasetFormat
    bytes: int
    """Size of the stored content."""
    digest: str
    """SHA-256 of the stored content."""
    source: Optional[DatasetSource]
    """The object from which the content was copied; null for an upload."""
    num_documents: int
    """Number of documents; a text is one document."""
    num_chats: int
    """Number of documents that are or have lists of messages; they need a chat template."""
    num_preferences: int
    """Number of documents that are a prompt with a chosen and a rejected completion."""
    num_labelled: int
    """Number of documents that are a prompt with a completion and its label."""
    num_prompts: int
    """Number of documents that are a prompt without a completion, which only reinforcement learning
    reads."""
    num_tokens: Optional[int]
    """`text`: number of tokens with the `bytes` tokenizer. `tokens`: number of its tokens. `jsonl`:
    `null`, because the number depends on the tokenizer."""
    max_token: Optional[int]
    """The largest token of `format=tokens`, which must be below a model's `vocab_size`; `null` for
    other formats."""
    created_at: Time


class DatasetPage(TypedDict):
    """A page of datasets."""
    data: List[Dataset]
    next_cursor: NextCursor


class DatasetPatch(TypedDict, total=False):
    """Fields to change; at least one."""
    name: Name
    description: Description


class _UploadRequestRequired(TypedDict):
    name: Name
    bytes: int
    """Size of what is sent."""



class UploadRequest(_UploadRequestRequired, total=False):
    """A dataset to be sent in parts."""
    format: DatasetFormat
    """Format of the content."""
    digest: Optional[str]
    """SHA-256 of what is sent; completion refuses anything else. The dataset has that of the stored
    content."""


class Upload(TypedDict):
    """A resumable upload."""
    id: UploadId
    project: ProjectName
    name: Name
    format: DatasetFormat
    bytes: int
    """Size of the whole content."""
    digest: Optional[str]
    """Announced digest of the content; null without one."""
    part_bytes: int
    """Size of each part but the last, which is the remainder."""
    num_parts: int
    """Number of parts."""
    received_parts: List[int]
    """Numbers of the received parts, ascending; empty after completion."""
    dataset_id: Optional[DatasetId]
    """Dataset of the upload; null until completion."""
    created_at: Time


class UploadUrlsRequest(TypedDict, total=False):
    """Parts to send, and the kind of URLs."""
    part_numbers: List[int]
    """Numbers of parts; absent: the missing parts, at most 1000."""
    sha256: List[str]
    """The SHA-256 of each of the `part_numbers`, base64. A presigned URL is then valid for these
    bytes alone. Buckets with a default retention (Object Lock) refuse parts without it."""
    expires_seconds: int
    """Validity of presigned URLs."""
    via: Literal["auto", "api"]
    """`api`: returns paths of this API even where presigned URLs are possible, for clients that
    cannot reach the object store."""


class UploadPart(TypedDict):
    """A part and its upload URL."""
    part_number: int
    """Number of the part, from 1."""
    bytes: int
    """Size of the part."""
    url: str
    """URL for a PUT of the part: a presigned URL, or a path of this API, which requires the API
    key."""
    headers: Dict[str, str]
    """Required headers of the PUT."""


class UploadUrls(TypedDict):
    """Parts and their upload URLs."""
    upload_id: UploadId
    expires_at: Optional[Time]
    """Time until which the URLs are valid; null for paths of this API."""
    parts: List[UploadPart]
    """In ascending order, or in the order of the request."""


class _ModelTokenizerRequired(TypedDict):
    vocab_size: int
    """The largest token plus one, including added tokens."""
    chat_template: Optional[str]
    """The template of `chat_template.jinja` or of `tokenizer_config.json`; null without one."""



class ModelTokenizer(_ModelTokenizerRequired, total=False):
    """A tokenizer that was uploaded with a model."""
    made_from: str
    """The SentencePiece model that the server made `tokenizer.json` of, because the folder had
    none; otherwise absent."""
    flaw: Literal["split_pattern"]
    """A known flaw of the published file, which is read as it is; absent without one.
    `split_pattern`: it splits texts at another pattern than the model's training did, as files of
    Mistral that transformers corrects with `fix_mistral_regex`."""


class _ModelSourceRequired(TypedDict):
    uri: SourceUri



class ModelSource(_ModelSourceRequired, total=False):
    """The folder, or for a tokenizer alone the object, from which a model was copied, at the time
    of the copy; absent for an upload. On the Hub the URI names the commit."""
    version: str
    """SHA-256 of names, sizes and ETags of the files, on the Hub of their hashes; equal for an
    unchanged folder. Absent if the object store returns no ETags."""


class _ModelRequired(TypedDict):
    id: ModelId
    project: ProjectName
    name: Name
    description: Description
    model_type: Optional[str]
    """The model family; `null` for a tokenizer alone."""
    num_parameters: int
    """Number of elements of all parameters; of an adapter, without those of its base."""
    dtypes: List[Literal["bf16", "fp16", "fp32"]]
    """Dtypes of the stored weights."""
    has_tokenizer: bool
    """True if `tokenizer.json` is among the files."""
    tokenizer: Optional[ModelTokenizer]
    """Description of the tokenizer; null without one."""
    bytes: int
    """Size of all files."""
    digest: str
    """SHA-256 of names and digests of the files, sorted by name; equal for equal folders."""
    files: List[ExportFile]
    """Stored files, sorted by name."""
    ignored_files: List[str]
    """Ignored files of the archive; the first hundred names."""
    config: Dict[str, Any]
    """The model's original `config.json`; empty for a tokenizer alone."""
    created_at: Time



class Model(_ModelRequired, total=False):
    """A Hugging Face model, or an adapter of PEFT over one, that was uploaded, or copied from a
    bucket or from the Hub. It may also be a tokenizer alone that a job named as `data.tokenizer`. A
    tokenizer alone has no `model_type`, no parameters and an empty `config`, and no job can begin
    with it."""
    unread_tokenizer: List[str]
    """Tokenizer files in an unsupported format, such as `vocab.json`, when there is no
    `tokenizer.json` and no `tokenizer.model`; otherwise absent. They are kept for exports. A job
    that begins with the model must name another `data.tokenizer`, or `bytes`."""
    warnings: List[Warning]
    """Content of the files without effect; present only in the response to the creation of the
    model, and only if there is any."""
    optimizer_steps: int
    """Number of updates of the uploaded optimizer state of a DeepSpeed checkpoint; absent without
    one."""
    optimizer_states: List[Literal["exp_avg", "exp_avg_sq", "momentum_buffer", "sum"]]
    """Optimizer states of each trained parameter; empty for SGD without momentum."""
    frozen_parameters: List[str]
    """Parameters without optimizer state, because they were not trained."""
    base: ModelId
    """The model that an adapter is over; otherwise absent. It can not be deleted before the
    adapter. `config`, and the tokenizer unless the adapter has its own, are copies of the base's."""
    adapter: ResolvedAdapter
    """The adapter, as its `adapter_config.json` and its tensors say; otherwise absent.
    `train.adapter` of a job that begins with it."""
    source: ModelSource


class ModelPage(TypedDict):
    """A page of models, the presets and the supported families."""
    data: List[Model]
    next_cursor: NextCursor
    presets: List[PresetName]
    """Values of `model.preset`."""
    families: List[str]
    """Supported values of `model_type` in a `config.json`."""


class ModelPatch(TypedDict, total=False):
    """Fields to change; at least one."""
    name: Name
    description: Description


class PoolGpus(TypedDict):
    """GPUs of one kind."""
    name: str
    """GPU model."""
    memory_bytes: int
    """Memory of each GPU."""
    count: int
    """Number of GPUs."""
    unhealthy: int
    """Number of unhealthy GPUs; `GET /v1/workers` describes their problems."""


class PoolGroup(TypedDict):
    """Workers of a pool whose ranks compute the same bits."""
    numerics: Optional[str]
    """Numerics fingerprint; null for workers that do not report one."""
    workers: int
    """Number of live workers."""
    slots: int
    """Total number of slots: ranks that can run at once."""
    used_slots: int
    """Slots held by jobs."""
    gpus: List[PoolGpus]
    """GPUs by model and memory; empty when ranks run on CPUs."""


class PoolMachineType(TypedDict):
    """Number of machines of one type, by state."""
    type: str
    """Name of the type."""
    running: int
    """Machines with a worker."""
    starting: int
    """Machines without a worker yet."""
    requested: int
    """Machines that do not exist yet."""
    terminating: int
    """Machines that are being ended."""


class LaunchProblem(TypedDict):
    """Reason for which requested machines of a type do not come."""
    type: str
    """Name of the type."""
    code: Literal["no_capacity", "quota", "permission", "configuration"]
    """`no_capacity`: the provider has no such machine now. `quota`: a limit of the account.
    `permission`: the account may not launch it. `configuration`: the request cannot be fulfilled."""
    message: str
    """Answer of the provider."""


class PoolPod(TypedDict):
    """Machine that is a pod of Kubernetes, or requested as one."""
    name: str
    """Name of the pod."""
    type: str
    """Name of its machine type."""
    node: Optional[str]
    """Node that it was given; null before."""
    phase: Literal["pending", "running", "leaving", "ended"]
    """`pending`: waits for a node or its image. `leaving`: is being deleted. `ended`: its agent has
    ended."""
    reason: Optional[str]
    """The cluster's word for why it does not start, leaves or ended; null for none."""
    message: Optional[str]
    """The cluster's explanation; null for none."""
    log: Optional[str]
    """End of the log of an agent that has ended; null for none."""


class PoolMachines(TypedDict):
    """Machines of a pool, and why requested ones do not come."""
    types: List[PoolMachineType]
    """Machine types of the pool."""
    problems: List[LaunchProblem]
    """Failed launches of machines that are requested."""
    pods: List[PoolPod]
    """Pods, where machines come from Kubernetes: those with a reason first, then those that do not
    run."""


class Pool(TypedDict):
    """Capacity and load of a pool."""
    name: PoolName
    workers: int
    """Number of live workers."""
    slots: int
    """Total number of slots: ranks that can run at once."""
    used_slots: int
    """Slots held by jobs."""
    running: int
    """Jobs that hold slots."""
    waiting: int
    """Jobs that wait for slots."""
    groups: List[PoolGroup]
    """Workers grouped by numerics fingerprint, in the order of `numerics`. All ranks of a job run
    in one group."""
    machines: Optional[PoolMachines]
    """Machines of the pool as its autoscaler sees them; null without an autoscaler."""


class PoolList(TypedDict):
    """All pools."""
    data: List[Pool]
    """By name."""


class WorkerGpu(TypedDict):
    """A GPU of a worker."""
    uuid: str
    """Unique id of the GPU, as shown by nvidia-smi."""
    name: str
    """GPU model, such as "NVIDIA H100 80GB HBM3"."""
    memory_bytes: int
    """Total memory."""
    driver: str
    """Driver version."""
    problem: Optional[str]
    """Description of a problem; null for a healthy GPU."""


class AvoidedWorker(TypedDict):
    """Another worker with a failed connection; the job is not placed on both workers."""
    worker_id: str
    """The other worker."""
    job_id: JobId
    until: Time
    """Time from which the job may be placed on both workers again."""


class Worker(TypedDict):
    """A worker, as it reported itself."""
    id: str
    """Identifier; each start of the worker gets a new one."""
    pool: PoolName
    host: str
    """Host name."""
    pid: int
    """Process id of the agent."""
    slots: int
    """Number of ranks that it can run at once."""
    used_slots: int
    """Slots held by jobs."""
    version: str
    """Version of its program."""
    address: str
    """Address at which other workers reach it."""
    machine: Optional[str]
    """Id of the machine that it runs on, as named by the machine's provider (for EC2 the instance
    id); null when the worker's configuration does not name it."""
    topology: List[str]
    """Domains of the network that contain the machine, the largest first, such as zone and host;
    empty when unknown. Ranks of a job are placed in as few domains as possible."""
    draining: bool
    """The worker accepts no new work, because it is shutting down or has a problem."""
    problem: Optional[str]
    """Description of a problem, such as a process that cannot be killed; null for a healthy worker."""
    numerics: Optional[str]
    """Numerics fingerprint of its ranks, such as `cpu-avx2/2`: equal fingerprints give equal bits;
    null when unknown."""
    gpus: List[WorkerGpu]
    """GPUs of its slots, one rank each; empty when ranks run on the CPU."""
    answer_gpus: List[WorkerGpu]
    """GPUs that answer samples and run no ranks; empty when the CPU answers."""
    memory_bytes: int
    """Host memory that its processes may use, including the limit of its container."""
    save_seconds: Optional[float]
    """Longest time in which the worker expected to save a job that it leads, from measured saves;
    null before the first one."""
    avoided: List[AvoidedWorker]
    """Workers with a failed connection to or from this one. An affected job is not placed on both
    until `until`."""
    last_seen: Time


class WorkerList(TypedDict):
    """All workers."""
    data: List[Worker]
    """By pool and id."""


class ApiKey(TypedDict):
    """An API key without its secret."""
    id: ApiKeyId
    project: ProjectName
    name: Name
    scopes: Scopes
    requests_per_minute: Optional[int]
    """Requests per minute; `null`: the limit of the server."""
    created_at: Time
    expires_at: Optional[Time]
    """Time from which the key is refused."""
    last_used_at: Optional[Time]
    """Time of the last use, accurate to five minutes; `null` when the key was never used."""
    previous_secret_until: Optional[Time]
    """Time until which the secret before the last rotation is accepted; `null` without one."""
    builtin: bool
    """True for the key from the server's configuration (`ZEROFLEET_API_KEY`, or the one in its data
    directory). That key is changed there, not by a rotation."""


class ApiKeyPage(TypedDict):
    """A page of API keys."""
    data: List[ApiKey]
    next_cursor: NextCursor


class _ApiKeyRequestRequired(TypedDict):
    name: Name
    scopes: Scopes



class ApiKeyRequest(_ApiKeyRequestRequired, total=False):
    """Fields of a new API key."""
    project: ProjectName
    """Project of the key; by default the project of the calling key. Creating its first key creates
    a project."""
    expires_at: Time
    requests_per_minute: int
    """Requests per minute; absent: the limit of the server."""


class NewApiKey(TypedDict):
    """An API key with its secret, which is not returned again."""
    id: ApiKeyId
    project: ProjectName
    name: Name
    scopes: Scopes
    requests_per_minute: Optional[int]
    """Requests per minute; `null`: the limit of the server."""
    created_at: Time
    expires_at: Optional[Time]
    """Time from which the key is refused."""
    last_used_at: Optional[Time]
    """Time of the last use, accurate to five minutes; `null` when the key was never used."""
    previous_secret_until: Optional[Time]
    """Time until which the secret before the last rotation is accepted; `null` without one."""
    builtin: bool
    """True for the key from the server's configuration (`ZEROFLEET_API_KEY`, or the one in its data
    directory). That key is changed there, not by a rotation."""
    secret: str
    """The bearer token."""


class ApiKeyPatch(TypedDict, total=False):
    """Fields to change; at least one."""
    name: Name
    expires_at: Optional[Time]
    """Time from which the key is refused; `null`: never."""
    requests_per_minute: Optional[int]
    """Requests per minute; `null`: the limit of the server."""


class RotateRequest(TypedDict, total=False):
    """Options of a rotation."""
    overlap_seconds: int
    """Seconds for which the previous secret remains valid."""


class SignInCode(TypedDict):
    """A code that signs one browser in."""
    code: str
    """The prefix `zf_code_` and 256 random bits."""
    expires_at: Time


class SignIn(TypedDict, total=False):
    """What signs a browser in; exactly one of the fields."""
    code: str
    """A sign-in code."""
    token: str
    """The secret of an API key or the token of a share."""


class User(TypedDict):
    """A user whom the OpenID provider has signed in."""
    id: str
    """Identifier of the user, the same at each sign-in."""
    subject: str
    """Identifier of the user at the provider."""
    name: str
    """Name, or else the e-mail address or the subject."""
    email: Optional[str]
    """E-mail address; `null` without one."""
    signed_in_at: Time
    """Time of the last sign-in."""
    expires_at: Time
    """End of the last sign-in."""


class ProjectQuota(TypedDict):
    """Quota of a project; `null`: unlimited."""
    max_jobs: Optional[int]
    """Number of unfinished jobs."""
    max_ranks: Optional[int]
    """Total number of ranks that unfinished jobs request, except paused ones."""
    max_storage_bytes: Optional[int]
    """Total bytes of datasets, models and checkpoints. Running jobs write checkpoints even above
    this limit."""


class Project(TypedDict):
    """A project."""
    name: ProjectName
    quota: ProjectQuota
    used: ProjectUsed
    """Current usage that counts towards the quota."""


class ProjectUsed(TypedDict):
    """Current usage that counts towards the quota."""
    jobs: int
    """Number of unfinished jobs."""
    ranks: int
    """Number of ranks that these jobs request."""
    storage_bytes: int
    """Bytes of datasets, models and checkpoints."""


class Me(TypedDict):
    """The sender of the request; exactly one of `api_key`, `share` and `user` is not `null`."""
    api_key: Optional[ApiKey]
    """The API key."""
    share: Optional[Share]
    """The share, whose job is all that it reads."""
    user: Optional[User]
    """The user of the OpenID provider."""
    scopes: Scopes
    project: Optional[Project]
    """The project of the key or the user; `null` for a share."""
    currency: Optional[str]
    """The currency of all costs, an ISO 4217 code; `null` if the operator has set none."""


class Session(TypedDict):
    """The principal of a session, and the time at which the session ends unless requests prolong
    it."""
    me: Me
    expires_at: Time


class SignedInUser(TypedDict):
    """A user with the rights of the last sign-in."""
    user: User
    scopes: Scopes
    num_sessions: int
    """Browser sessions that have not ended."""


class UserList(TypedDict):
    """All users of a project whose sign-in has not ended, the newest sign-in first."""
    data: List[SignedInUser]


class SignInMethods(TypedDict):
    """How a browser can sign in besides a key."""
    oidc: Optional[SignInMethodsOidc1]
    """The OpenID provider; `null` without one."""


class SignInMethodsOidc1(TypedDict):
    name: str
    """Name for people."""
    path: str
    """Path that begins a sign-in, relative to the console."""


class AuditEntry(TypedDict):
    """A request that changed something, or tried to."""
    id: AuditEntryId
    at: Time
    principal_id: PrincipalId
    principal_name: str
    """Name of the key or the user, or description of the share, at the time of the request."""
    session: bool
    """True if a browser session has sent the request."""
    operation: OperationName
    resource: Optional[str]
    """Id of the created resource, otherwise of the requested resource; `null` without one."""
    outcome: Literal["succeeded", "refused", "failed"]
    """`refused`: the status was 4xx; `failed`: the status was 5xx, and the change may or may not
    have been made."""
    status: int
    """HTTP status of the response."""
    code: Optional[str]
    """Error code; `null` without an error."""
    request_id: str
    """Identifies the request in the error and in the server's log."""


class AuditPage(TypedDict):
    """A page of the audit log."""
    data: List[AuditEntry]
    next_cursor: Optional[AuditEntryId]
    """Send it as `after` for the next page; null on the last page."""


class WebhookSecretTimes(TypedDict):
    """Validity of a secret."""
    created_at: Time
    expires_at: Optional[Time]
    """Time at which it stops signing; `null` for the newest."""


class Webhook(TypedDict):
    """A webhook without its secrets."""
    id: WebhookId
    url: WebhookUrl
    description: str
    """Description for display."""
    events: WebhookEvents
    jobs: WebhookJobs
    enabled: WebhookEnabled
    disabled_reason: WebhookDisabledReason
    failing_since: WebhookFailingSince
    created_at: Time
    secrets: List[WebhookSecretTimes]
    """The secrets that currently sign, the newest first, without their values."""


class WebhookPage(TypedDict):
    """A page of webhooks."""
    data: List[Webhook]
    next_cursor: NextCursor


class _WebhookSpecRequired(TypedDict):
    url: WebhookUrl



class WebhookSpec(_WebhookSpecRequired, total=False):
    """Fields of a new webhook."""
    description: str
    """Description for display."""
    events: WebhookEvents
    jobs: WebhookJobs
    enabled: WebhookEnabled


class WebhookWithSecret(TypedDict):
    """A webhook with its new secret."""
    id: WebhookId
    url: WebhookUrl
    description: str
    """Description for display."""
    events: WebhookEvents
    jobs: WebhookJobs
    enabled: WebhookEnabled
    disabled_reason: WebhookDisabledReason
    failing_since: WebhookFailingSince
    created_at: Time
    secrets: List[WebhookSecretTimes]
    """The secrets that currently sign, the newest first."""
    secret: str
    """Secret that verifies the signatures, in the format of the Standard Webhooks libraries. It is
    not returned again."""


class WebhookPatch(TypedDict, total=False):
    """Fields to change; at least one."""
    url: WebhookUrl
    description: str
    """Description for display."""
    events: WebhookEvents
    jobs: WebhookJobs
    enabled: WebhookEnabled


class RotateSecretRequest(TypedDict, total=False):
    """Options of a rotation."""
    overlap_seconds: int
    """Seconds for which the previous secret signs as well."""


class WebhookMessage(TypedDict):
    """Body of a message to the URL."""
    type: str
    """Type of the event."""
    timestamp: Time
    data: WebhookMessageData
    """The event."""


class WebhookMessageData(TypedDict):
    """The event."""
    job_id: JobId
    seq: Seq
    position: StreamPosition
    details: Dict[str, Any]
    """`data` of the event."""


class WebhookPing(TypedDict):
    """Body of a test message to the URL."""
    type: Literal["webhook.ping"]
    """Always `webhook.ping`."""
    timestamp: Time
    data: WebhookPingData
    """The tested webhook."""


class WebhookPingData(TypedDict):
    """The tested webhook."""
    webhook_id: WebhookId


class DeliveryAttempt(TypedDict):
    """An attempt to send the message."""
    at: Time
    status: Optional[int]
    """HTTP status of the response; `null` without a response."""
    error: Optional[Literal["address_refused", "name_not_found", "connection_failed", "tls_failed", "timeout", "protocol_error", "refused_by_receiver", "webhook_disabled"]]
    """Error of the attempt; `null` when it succeeded."""
    duration_ms: int
    """Duration of the attempt."""


class Delivery(TypedDict):
    """A message and its attempts."""
    id: DeliveryId
    webhook_id: WebhookId
    message_id: str
    """The header `webhook-id`; equal in all attempts."""
    message: Union[WebhookMessage, WebhookPing]
    """The body."""
    state: Literal["pending", "succeeded", "failed"]
    """`succeeded` once the receiver has responded with 2xx; `failed` after the last attempt."""
    created_at: Time
    next_attempt_at: Optional[Time]
    """Approximate time of the next attempt; `null` without one."""
    attempts: List[DeliveryAttempt]
    """The last attempts, oldest first."""


class DeliveryPage(TypedDict):
    """A page of messages."""
    data: List[Delivery]
    next_cursor: NextCursor


class ProjectList(TypedDict):
    """All projects."""
    data: List[Project]


class QuotaRequest(TypedDict, total=False):
    """Quota of a project; an absent limit or `null`: unlimited."""
    max_jobs: Optional[int]
    """Number of unfinished jobs."""
    max_ranks: Optional[int]
    """Total number of ranks that unfinished jobs request, except paused ones."""
    max_storage_bytes: Optional[int]
    """Total bytes of datasets, models and checkpoints. Running jobs write checkpoints even above
    this limit."""


class ProjectRequest(TypedDict):
    """Fields of a project to set."""
    quota: QuotaRequest


class HubToken(TypedDict):
    """Whether a project has a token of the Hugging Face Hub."""
    set_at: Optional[Time]
    """Time at which the token was set; `null` without one."""


class HubTokenRequest(TypedDict):
    """A token of the Hugging Face Hub."""
    token: str
    """The token of a user or an organization, e.g. `hf_…`."""


class UsageSums(TypedDict):
    """Usage."""
    jobs: int
    """Number of created jobs."""
    run_seconds: float
    """Time for which jobs held ranks."""
    rank_seconds: float
    """Sum over the ranks of the time for which jobs held them."""
    cost: float
    """Cost of the ranks at the price of the workers (`ZEROFLEET_PRICE_PER_RANK_HOUR`)."""
    tokens: int
    """Number of tokens trained on; tokens of repeated steps count again."""


class DayUsage(TypedDict):
    """Usage of one day."""
    date: str
    """The day, UTC."""
    jobs: int
    """Number of created jobs."""
    run_seconds: float
    """Time for which jobs held ranks."""
    rank_seconds: float
    """Sum over the ranks of the time for which jobs held them."""
    cost: float
    """Cost of the ranks at the price of the workers (`ZEROFLEET_PRICE_PER_RANK_HOUR`)."""
    tokens: int
    """Number of tokens trained on; tokens of repeated steps count again."""


_ProjectUsageNames = TypedDict("_ProjectUsageNames", {"from": "str"})


class ProjectUsage(_ProjectUsageNames):
    """Past usage and current resources of a project."""
    project: ProjectName
    to: str
    """The last day."""
    total: UsageSums
    days: List[DayUsage]
    """Usage of each day, oldest first."""
    jobs: Dict[str, int]
    """Number of current jobs, by state."""
    ranks: int
    """Number of ranks that unfinished jobs request, except paused ones."""
    storage: ProjectUsageStorage
    """Currently stored bytes. Exports are not counted."""
    quota: ProjectQuota


class ProjectUsageStorage(TypedDict):
    """Currently stored bytes. Exports are not counted."""
    dataset_bytes: int
    """Datasets."""
    model_bytes: int
    """Models."""
    checkpoint_bytes: int
    """Checkpoints."""
    upload_bytes: int
    """Incomplete uploads in parts, each with its announced size."""
    total_bytes: int
    """Sum of all."""


class Health(TypedDict):
    """State of the process."""
    status: Literal["ok", "draining"]
    """`draining`: it is shutting down."""
    version: str
    """Version of the program."""


class ReadinessCheck(TypedDict):
    """Check of one service."""
    ok: bool
    """The service responded."""
    code: Optional[str]
    """Code of the error catalogue if the check failed."""


class Readiness(TypedDict):
    """Services that the process needs, and their status."""
    status: Literal["ready", "not_ready"]
    """`ready` when all checks have passed."""
    checks: ReadinessChecks
    """One entry for each service."""


class ReadinessChecks(TypedDict):
    """One entry for each service."""
    redis: ReadinessCheck
    object_store: ReadinessCheck


JobId = str
"""`job_` and a ULID; identifiers sort by time of creation."""

Name = str
"""Display name."""

JobState = Literal["queued", "provisioning", "starting", "running", "recovering", "pausing", "paused", "cancelling", "cancelled", "succeeded", "failed"]
"""`cancelled`, `succeeded` and `failed` are final: a job never leaves them, except that a user can
retry a failed job."""

PoolName = str
"""Name of a pool."""

Time = str
"""RFC 3339, UTC."""

ProjectName = str
"""Project of the resource. Keys of other projects cannot access it."""

Labels = Dict[str, str]
"""`name=value` pairs by which jobs can be listed."""

Notes = str
"""Notes about the job, in plain text."""

Priority = int
"""Jobs of a higher priority run first; each minute of waiting counts as one point. A job may
preempt jobs of a lower priority in its pool, which save and return to the queue."""

TokenIds = Optional[Union[int, List[int]]]
"""Id of a special token, several or none; kept for the exported model."""

ResolvedModelConfig = Union[ResolvedGpt2Config, ResolvedLlamaConfig, ResolvedMistralConfig, ResolvedQwen2Config, ResolvedQwen3Config, ResolvedMixtralConfig, ResolvedSmollm3Config, ResolvedGraniteConfig, ResolvedOlmo2Config, ResolvedOlmo3Config, ResolvedQwen3MoeConfig, ResolvedGemma3Config, ResolvedGemma2Config, ResolvedPhi3Config, ResolvedGlm4Config, ResolvedGptNeoxConfig, ResolvedGlmConfig, ResolvedQwen2MoeConfig]
"""The configuration with every field of its family, as spelled by transformers 4."""

PresetName = Literal["llama-tiny", "llama-small", "gpt2", "mixtral-tiny"]
"""`llama-tiny`: 4 layers, width 256, vocabulary 256. `llama-small`: 8 layers, width 512, vocabulary
32000, grouped-query attention. `gpt2`: the smallest GPT-2, 124 million parameters, vocabulary
50257, without dropout. `mixtral-tiny`: 4 layers, width 256, vocabulary 256, 4 experts of which each
token uses 2."""

Quantization = Literal["nf4", "int8"]
"""Storage of the frozen matrices of the layers, for a job with `train.adapter` (QLoRA, Dettmers et
al. 2023): 4-bit `nf4` or 8-bit `int8`, with a quantized scale per 64 elements. Embeddings, norms,
biases, routers and the output projection stay in `train.precision`."""

CheckpointId = str
"""`ckpt_` and a ULID."""

Restore = Literal["full", "weights", "weights_16bit", "continue"]
"""State that the job takes over. `weights`: the fp32 master weights; the optimizer starts fresh.
`full`: also the optimizer state and its step count; the optimizer `type` and the frozen parameters
must match. `weights_16bit`: as `full`, with the weights rounded to `train.precision` (DeepSpeed's
`load_from_fp32_weights: false`). `continue`: as `full`, and the job continues after the
checkpoint's step; otherwise it counts its steps from 0. A model has weights only, unless it is a
DeepSpeed checkpoint."""

ModelId = str
"""`mdl_` and a ULID; identifiers sort by time of creation."""

Seed = int
"""Seed of the counter-based random numbers."""

ResolvedBase = Union[ResolvedBase1, ResolvedBase2, ResolvedBase3]
"""Source of the frozen base under the adapters of `train.adapter`; absent without. Checkpoints of
the job do not contain the base, so that its source can only be deleted after the job."""

DatasetId = str
"""`ds_` and a ULID; identifiers sort by time of creation."""

SourceUri = str
"""An S3 object or folder, `s3://bucket/key`; or a file or folder on the Hugging Face Hub,
`hf://owner/name@revision/path` or `hf://datasets/owner/name@revision/path`. The default revision is
`main`."""

DatasetFormat = Literal["text", "jsonl", "tokens"]
"""Format of the stored content; `docs/data.md` describes each, and what is converted to it."""

Precision = Literal["bf16", "fp16", "fp32"]
"""A number format."""

Overrides = List[OverrideSpec]
"""Changes of the learning rate or of the loss scale at given steps, in ascending order of `step`."""

EvaluationMetric = str
"""Metric of an evaluation: `eval_loss` for the data of `data.validation_fraction`, or `eval_loss/`
and the name of an entry of `train.evaluation.datasets`. With the objective `grpo` it is
`eval_reward/` and the name: the mean reward, of which higher is better."""

GraderName = str
"""Name in scores and errors."""

GraderTemplate = str
"""Text with templates."""

WebhookId = str
"""Identifier of a webhook."""

SingleGrader = Any
"""A grader that is no combination of others."""

Grader = Any
"""Scores the answer of a model. `type` determines the other fields. Inputs and references are
templates: `{{item.NAME}}` is a field of the line of data, `{{sample.output_text}}` the answer,
`{{sample.output_json.NAME}}` a field of an answer that is JSON. `docs/graders.md` describes each
type."""

ResolvedObjective = Union[ResolvedPreferences, ResolvedReinforcement]
"""The objective, with every field of its type."""

ExportWeights = Literal["trained", "ema"]
"""`trained`: the weights as trained. `ema`: their average, of a job with `train.ema`; parameters
that were not trained keep their values."""

ExportTensorboard = bool
"""`true` also writes the metrics of the training, up to the exported step, as a TensorBoard event
file into the folder of the weights."""

Integrations = List[Integration]
"""Experiment trackers that receive the metrics of the job while it runs. The training does not
depend on them. See `docs/integrations.md`."""

Sources = Dict[str, SourceUri]
"""URI of each dataset and model of the document that was copied from a bucket or from the Hub, by
its id; absent without any. On the Hub it names the commit."""

StateDigest = str
"""128-bit digest of the whole training state (master parameters and moments). It does not depend on
the number of ranks: equal digests mean equal training."""

FailureCategory = Literal["user", "data", "oom", "diverged", "hardware", "preempted", "capacity", "limit", "internal"]
"""Category of a failure."""

NextCursor = Optional[str]
"""Send it as `after` for the next page; `null` on the last page."""

ModelType = Literal["gpt2", "llama", "mistral", "qwen2", "qwen3", "mixtral", "smollm3", "granite", "olmo2", "olmo3", "qwen3_moe", "gemma3_text", "gemma2", "phi3", "glm4", "gpt_neox", "glm", "qwen2_moe"]
"""The model family."""

ModelConfig = Dict[str, Any]
"""A Hugging Face `config.json`, as written by transformers 4 or 5, of the family that `model_type`
names. An absent field has the default of transformers. An unknown field is refused, and so is a
field that would change the mathematics in an unsupported way. `docs/models.md` has the fields of
each family."""

InitFromSpec = Union[Dict[str, Any], str]
"""Initial state in place of random weights: a committed checkpoint of a model with the same
parameters, or a model. The model is uploaded, in a bucket, or on the Hugging Face Hub. Set exactly
one; a string is short for that value alone."""

DeepspeedConfig = Dict[str, Any]
"""An existing DeepSpeed configuration, in place of the fields of `train` and `zero` that it
defines. The resolved document has the translation. A key without an equivalent is refused; see
`docs/deepspeed.md`."""

EstimateDevice = Literal["cpu", "cuda"]
"""Device of the ranks. With `cuda` the bytes are those in the GPU's memory, without the memory of
the CUDA runtime and NCCL. With `offload: cpu` master weights, moments and sums of gradients are 0
there, because they are in host memory. `threads` and `instruction_set` apply to the CPU only."""

InstructionSet = Literal["generic", "avx2", "avx512", "avx512bf16"]
"""Instruction set of the kernels, as in the worker's numerics fingerprint. The kernels that
multiply bf16 keep packed weights in half the space. By default the best one of the server's
machine."""

RootCause = Dict[str, Any]
"""Root cause of the failure of an attempt: its last error."""

StreamPosition = str
"""The job's stream, the `seq` of an item and a stamp of the item, separated by hyphens, such as
`3fa91c0b-41-660da8a518800`. After a loss of Redis the job has another stream. The stamp
distinguishes items with the same `seq` after a failover lost one of them."""

Seq = int
"""Number in the job's sequence of events, metrics and log lines; it increases, and starts from 1
again after a loss of Redis."""

MetricName = str
"""A metric of steps: `loss`, `aux_loss`, `grad_norm`, `lr`, `loss_scale`, `tokens_per_second`,
`world_size`, `memory_bytes`, or the metric of an evaluation. Also a field of `preference`, such as
`preference/margin`, of `reinforcement`, such as `reinforcement/reward`, or of `system` for rank 0,
such as `system/cpu/0`."""

CheckpointCursor = str
"""Position of a checkpoint in its job's list, which is ordered by step."""

EditId = str
"""Identifies the change of a tensor; a digest of checkpoint, tensor, state and values."""

TensorName = str
"""Name of a parameter."""

TensorState = Literal["master", "exp_avg", "exp_avg_sq", "momentum_buffer", "sum", "ema"]
"""`master`: the fp32 weights; `ema`: their average; the others: states of the optimizer. A shard
has them in this order."""

ShareId = str
"""Identifier of a share. It is not secret."""

ShareDescription = str
"""A note for people. Those who open the link see it."""

CallNumber = int
"""Number of a call in its session. The first call has 1, each later one the next number."""

CallType = Literal["forward_backward", "forward", "optim_step", "sample", "save_state", "load_state", "finish"]
"""Kind of call."""

CallState = Literal["pending", "done"]
"""`done` as soon as the result exists."""

CallRequest = str
"""Name that the client gives its request. Calls with the same content and different names are
different calls, so a client that no longer knows the number of its call recognizes the call."""

CallTokens = List[int]
"""Numbers of tokens."""

RowNumbers = List[float]
"""One number for each position; those without a target are not read."""

StoredCall = Union[PassCall, StoredOptimStepCall, StoredSampleCall, SaveStateCall, StoredLoadStateCall, FinishCall]
"""A call of the log. Absent fields of the request have the values that the session used for them."""

Call = Union[PassCall, OptimStepCall, SampleCall, SaveStateCall, LoadStateCall, FinishCall]
"""One call of a session. A pass, `forward_backward` or `forward`, computes a loss of rows.
`optim_step` updates the weights, `sample` generates tokens, `save_state` and `load_state` keep and
restore the state, `finish` ends the session."""

CallResult = Union[PassResult, OptimStepResult, SampleResult, SaveStateResult, LoadStateResult, CallFailure]
"""Result of a call, by its kind; `CallFailure` for a call that could not be done."""

SweepId = str
"""`swp_` and a ULID; identifiers sort by time of creation."""

SweepState = Literal["running", "paused", "succeeded", "failed", "cancelled"]
"""`succeeded`, `failed` (no run succeeded) and `cancelled` are final."""

SweepMethod = Literal["grid", "random", "successive_halving"]
"""`grid`: a run for each combination of the values. `random`: `runs` combinations, drawn with
`seed`. `successive_halving`: runs of either kind; at each rung the best ones continue and the
others end (Jamieson and Talwalkar 2016). The order in which runs are trained does not change which
of them continue."""

SweepValue = Optional[Union[str, float, bool]]
"""Value of a field; `null` removes the field from the document."""

SweepRunState = Literal["waiting", "running", "held", "stopped", "succeeded", "failed", "cancelled"]
"""`waiting`: for one of `max_concurrent`. `running`: its job trains or waits for slots. `held`: its
job is paused at a rung until all runs have reached it. `stopped`: others were better at its last
rung. The others as of the job."""

ToolName = str
"""Name of a function."""

ResponseFormat = Union[ResponseFormat1, ResponseFormat2]
"""Form of the text of an answer."""

TokenBytes = List[int]
"""Bytes of the token in UTF-8. The bytes of all tokens together are the text."""

ExportFormat = Literal["safetensors", "peft", "peft_folded", "gguf", "gguf_lora", "deepspeed_universal"]
"""`safetensors`: the weights as a Hugging Face model folder, adapters merged. `peft`: the adapters
alone, as a folder of PEFT, of a job with `train.adapter`. `peft_folded`: as `peft`, with the scale
of rank-stabilized adapters as `lora_alpha`, for engines that ignore `use_rslora`. `gguf`: the
weights and the tokenizer as a file of llama.cpp, adapters merged, and a Modelfile of Ollama.
`gguf_lora`: the adapters alone as a file of llama.cpp. `deepspeed_universal`: the weights, the
optimizer state and its step count, as DeepSpeed's universal checkpoint."""

ExportDtype = Literal["bf16", "fp16", "fp32", "q8_0"]
"""Dtype of the weights. `q8_0`, for `gguf`: blocks of 32 weights in 8 bits with an fp16 scale."""

Description = str
"""Description for display; initially empty."""

UploadId = str
"""`upl_` and a ULID."""

ApiKeyId = str
"""Identifier of an API key. It is not secret."""

Scope = Literal["jobs:read", "jobs:write", "datasets", "models", "admin", "operator"]
"""`jobs:read`: read jobs; `jobs:write`: create and control jobs; `datasets` and `models`: upload
them. `admin`: all of these, and management of the project's keys. `operator`: management of the
whole installation, such as keys of other projects and quotas."""

Scopes = List[Scope]
"""Permissions of the key. `admin` includes all other scopes but `operator`."""

PrincipalId = str
"""Identifier of the sender of requests, an API key, a share or a user."""

AuditEntryId = str
"""Position of an entry in the audit log."""

OperationName = str
"""Name of an operation: its `operationId` in this document."""

WebhookUrl = str
"""URL that receives the messages. The server refuses `http` and addresses that are not public,
unless the operator has allowed them; it also refuses a user name, a password and a fragment."""

WebhookEvents = List[str]
"""Types of events to send: one by its name, those with the same first word (`checkpoint.*`), or all
(`*`)."""

WebhookJobs = Literal["all", "named"]
"""`all`: events of every job. `named`: only of jobs whose `notify.webhooks` names the webhook."""

WebhookEnabled = bool
"""The server sends messages only to enabled webhooks."""

WebhookDisabledReason = Optional[Literal["not_delivered"]]
"""`not_delivered`: the server has set `enabled` to false, because no message was accepted for three
days. `null`: the webhook is enabled, or a user has disabled it."""

WebhookFailingSince = Optional[Time]
"""Time since which no message has been accepted; `null` when the last one was accepted, or none was
sent since the webhook was changed."""

DeliveryId = str
"""Identifier of a message to a webhook."""
