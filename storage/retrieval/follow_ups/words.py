"""Words without a topic, in English, German and Chinese.

Function words make the form of a question. General words have a meaning but no topic: a question
that consists of them depends on what came before. "Were there any side effects?" and "Is breakfast
included?" need an earlier subject; "Do penguins have knees?" does not.
"""

from __future__ import annotations

# In English and German.
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those it its he his him she her hers they them their theirs i me my
    mine we us our you your one ones other others another any anything anyone anybody some something
    someone somebody nothing nobody no not none never every each all both either neither same such
    else only just even also too still yet already again instead then there here now more most less
    least much many few enough so very who whom whose what which when where why how is are am was
    were be been being isn aren wasn weren do does did doesn don didn has have had hasn haven can
    could may might must shall should will would cannot won and or but if because since until while
    before after once unless although than as of in on at for from to with without by about against
    between into over under per during through near nearby off up down out like please tell show
    list give explain go continue really okay ok yes thanks sort translate find

    ein eine einen einem einer eines der die das den dem des dies diese dieser dieses diesen
    diesem es er sie ihn ihm ihr ihre ihren ihrem ihrer ihnen sein seine seinem seinen seiner
    deren dessen ich mich mir mein meine meinen meinem meiner wir uns unser unsere unserer
    unseren du dich dir dein deine man sich jemand niemand nichts etwas irgendwas irgendwelche
    irgendein irgendeine kein keine keinen andere anderen anderer anderes beide beiden selbe
    selben gleiche alle alles jeder wer wem wen wessen welche welcher welches welchen welchem
    wann wo wohin woher warum wieso weshalb wie wozu womit wofür worauf worum ist sind waren bin
    bist wird werden wurde wurden würde wäre hat haben habe hast hatte hatten kann können kannst
    könnte darf dürfen muss müssen soll sollen sollte will wollen gibt gab geht und oder aber
    wenn falls weil dass ob bevor nachdem als seit bis ab von vom zu zum zur im auf aus bei beim
    mit nach für ohne um über unter vor gegen zwischen pro außer nicht nur auch noch schon sonst
    da dort hier dann danach davor dafür damit davon dazu darin daran darauf darüber dabei drin
    jetzt nun mal denn doch sehr mehr weniger viel viele oft lange genau wieder immer selbst
    sogar eigentlich bitte zeig erzähl liste sag gib erklär weiter wirklich
    """.split()  # noqa: SIM905  # words read best as text
)

# In Chinese.
FUNCTION_CHARACTERS = frozenset(
    "的了吗呢吧啊么是在有不没无别也都还就才又再要会能可以该得应需想把被让给跟和与对从到往向比按用为因什怎"
    "谁哪几多少何这那它他她我你您们咱个些次张本条件家位只第一二三四五六七八九十两天周月年日号点里上下前后"
    "中间外内边最更太很真已经刚现当时候其另每各全所请来去过着地做说样如果除关于久大小长高远贵早晚好人"
)

# In English and German, without endings.
GENERAL_WORDS = frozenset(
    """
    ability able accept access accident action active activity actual address advantage advice
    affect age ago agree alive allow almost alone alternative amount animal announce annual
    answer anymore anyway anywhere appear application apply approach approve area argument
    arrive article aspect associated attend author available average avoid away bad basic became
    become began begin begun behind believe benefit best better big biggest book born bother
    bought break breakfast bring broke brought build built busy buy call came cancel
    capacity care carry case cause certain chance change chapter charge cheap check child choice
    choose circumstance claim clear client close cold color colour come comment common company
    compare complain complete complicated component concern condition confirm connect cons
    consequence consider contact contain content contribute contribution convince correct cost
    count couple course cover create criteria critical criticism critics culture current
    customer cut daily damage danger date day deadline deal death decade decide decision default
    degree delay deliver depend describe description detail develop development died differ
    difference difficult directly disadvantage disagree discount discover discuss distance
    document done double doubt downside duration earlier early easier easiest easy effect effort
    element email employee enabled encourage end enjoy entire entrance entry equipment error
    especially estimate evening event eventually evidence exact example except exist expect
    expensive experience expert explanation extend extra extreme fact fail family famous far
    fast fault favorite favourite feature fee final fine finish first fit fix flexible follow
    forbidden forget form found free fresh friend full function future gave general get given
    goal gone good got great group grow guarantee guest guidance half happen happy hard harm
    head health help high history hold hour huge human idea impact importance important
    impossible improve included increase individual influence information ingredient inside
    instruction intend interest invent invite involved issue item join keep kept key kid kind
    knew know language large last late law lead learn leave left legal legend length letter
    level life lifespan lifetime likely limit limitation link listen little live local located
    location long look lose loss lost lot love low made main major make manage mandatory married
    matter maximum maybe mean measure meet member men mention message met middle mind minimum
    minute miss mistake model modern moment money month morning move name national natural
    nearly necessary need negative new next night normal notable note notice notify number
    objection objective occur offer office official old open opinion opposite option order
    origin outcome outside overall owned owner pack page paid parent part participant
    participate particular past pay payment people percent perform performance period permission
    permit person phone photo picture piece place plan play point popular population position
    positive possible possibly post potential predict prefer prepare present pretty prevent
    previous price prize problem process produce product professional profit project promise
    proper pros prove provide public publish punishment purpose put quality quantity question
    quick quite rating reach react read real reason receive recent recipient recommend
    record reduce reference refund regular regulation reject relate relationship release
    reliable remain remember remove repair repeat repetition replace replied reply report
    request require requirement research respond response responsible rest restriction result
    return review reward right risk role room rough rule run safe said salary sale saw say scale
    schedule score second secret section see select sell send sent separate serious serve
    service set several severe share short side sign significant similar simple simply single
    situation size slow small sold solution solve sound source speak special specific
    specifically speed spend spent spread stable stage standard start state statement statistics
    status stay step stop story strange strategy strength strong study stuff style subject
    succeed success suffer suggest suitable summary support suppose sure surprise survive
    symptom synonym take talk task taste team temperature term test text thing think third
    thought threat ticket time timing title today together told tomorrow tonight took top total
    tough track tradition treat treatment tried true trust truth try type typical unique unit
    update upside usage use usual valid valuable value variation variety various vary version
    view visit vote wait want warm warning warranty way weak weakness wear week weight went
    whole wide width win woman women word work world worry worse worst worth write written wrong
    wrote year yesterday young

    abend abgelaufen abgesagt ablauf ablehnen absage abstand adresse aktion aktuell akzeptier
    allein allerdings allgemein alter alternativ anbieter anders anfang anfänger angeblich
    angebot angenommen angst anlass anleitung anmeld annehmen anruf ansicht ansprechpartner
    anteil antwort anzahl arbeit argument art auffällig aufgabe aufgeführt auflage aufwand
    ausdruck ausführlich ausgang ausgegangen auslöser ausnahme ausreichen aussage aussehen
    auswahl auswirkung autor bald basis bauen bedeut bedingung beeinflus begann beginn begonnen
    begründ behoben beispiel beitrag bekam bekannt bekommen beliebt bemerk benutz benötig
    beobacht berechn bereich bereit bericht beruf berühmt beschlossen beschluss beschreib
    beschwerde besonder besser bestand bestehen bestell besten bestimm bestätig besuch beteilig
    betrag betreff betroffen bevölkerung beweis bezahl bezieh billig bisher bleib blieb brachte
    brauch bring buch budget chance chef damals datum dauer deckel defekt detail deutlich dick
    dienst ding direkt dokument doppelt drastisch dringend dritte droht durchschnitt echt effekt
    ehepaar eher eigen eigenschaft eilig einfach einfluss eingang einheit einig einkommen einmal
    einnahme einwand einwohner einzeln empfehl empfohlen ende endgültig energie entdeck entfern
    enthalten enthält entscheid entschied entstand entsteh entwickl erfahr erfind erfolg erfund
    ergebnis erhalt erhöh erinner erkenn erlaub ermäßig ernst erreich ersatz ersetz erst
    erwachsen erwart erweiter erwähn etwa euro extra fach fakt fall falsch familie fand farbe
    fehl fertig fest finden folge form frage frau frei freiwillig freund frist früh frühstück
    funktion fähig führ ganz garantie gast gebaut gebiet geboren gebot gebrauch gebäude gebühr
    gedauert geeignet gefahr gefallen gefund gefährlich gefäll gefühl geführt gegeben gegenteil
    gegründ gehalt geheim geholfen gehör geklappt geld gelernt gelten gelöst gemacht gemeint
    genannt genehmig genommen genutzt gering gesagt gesamt geschafft geschehen geschichte
    geschlossen geschrieb gesetz gestern gestiegen gesund gewann gewicht gewinn gewiss gewonnen
    gewöhnlich gezahlt geändert gilt ging glaub gleichzeitig grad grenz groß grund gruppe größ
    gründ gut gäste gültig güns half haltbar haltbarkeit haupt heiß heut hilf hinweis hoch hoh
    hälfte häufig höchst höh idee information inhalt interess inzwischen irgend jahr jahrhundert
    jahrzehnt jung jünger kalt kam kapazität kapitel kategorie kauf kenn kind klapp klar klein
    komm kommentar kompliziert konkret konsequenz kontakt kosten kostet krit kritisch kund kurz
    kürz lag land lang langfristig laufen laut leben legal leicht leist leit lernen letzt lieb
    liefer lieg link lohn los länge läuft lösung mach mag manchmal mann material maximal
    maßnahme mehrere meinung meist meld menge mensch merk methode mindest minimum minute
    mitgebracht mitglied mitnehmen mitte modell moment monat montag morgen musst möcht mögen
    möglich möglichkeit nachfrage nachgewies nachmittag nachricht nacht nah name natürlich
    nebenwirkung negativ nehm nenn nett neu nie niedrig niveau normal normalerweise notwendig
    nummer nutz nächst näher nötig oben objekt offen offiziell ordnung ort pass person pflicht
    plan platz plötzlich politisch positiv preis problem produkt projekt prozent prüf punkt
    qualität quelle rabatt rat reagier reaktion recht rechtlich regel regelmäßig reich
    reichweite reihe reihenfolge richtig risiken risiko rolle ruf rückmeld sache sagt sah schad
    scheiter schick schlecht schlimm schluss schnell schreib schrieb schritt schuld schutz
    schwach schwer schwierig schön seite selten senden setz sicher sieg siehe sinn situation
    solch sorge sorten sparen speicher spiel sprache spät spür staat stadt stand starb stark
    start stat stehen steht steig stell sterb stimm stopp strafe studie stufe stunde stärk
    symptom system tag tat tatsächlich teil teilnehm temperatur termin test teuer text thema
    tief tipp titel tod tot trag treff trenn tun typ typisch täglich uhr umfang umgang umgekehrt
    umgesetzt umsonst umstand unbedingt unerwünscht ungefähr ungewöhnlich unterlage unterschied
    unterschiedlich unterstütz ursache ursprung ursprünglich urteil variante verantwortlich
    verbess verbind verbot verbreit verdien vergang vergleich verhalt verhinder verkauf verlang
    verlauf verletz verlier verlor verlänger vermeid verschieb verschieden verschoben version
    versprech versteh versuch vertrag verwend veränder veröffentlich viert voll vorausgesetz
    voraussetzung vorbereit vorgeh vorgesetz vorgänger vorher vorig vorschlag vorteil völlig
    wahr wahrscheinlich war wechsel weg wehr weit welt wenig wert wesentlich wichtig widersprech
    widerspruch wieg wirk wirtschaft wiss woche wochenende wohn wort wunsch wurd zahl zeit
    zeitraum zentral ziel ziemlich zimmer zitat zivil zufrieden zugang zukunft zuletzt zunächst
    zurück zusammen zusammenhang zustand zustimm zuständig zusätzlich zutat zuverlässig zweck
    zweifel zweite zählen ähnlich älter öffentlich öffn öfter überhaupt überprüf überrasch
    üblich übrig
    """.split()  # noqa: SIM905  # words read best as text
)

# The same of Chinese.
GENERAL_CHARACTERS = frozenset(
    """
    一共 一般 一起 上午 上映 上班 上限 下午 下限 不同 丑 世界 世纪 东西 严重 主人 主演 主要 主题
    之前 之后 买 了解 事 事件 事情 产品 产生 人口 人数 今天 今年 介绍 仍然 付款 付钱 代替 代表
    价格 价钱 任务 休息 优势 优惠 优点 传统 位置 住 作用 作者 使用 例外 例子 依据 便宜 保存 保存期
    保质期 信息 修 修复 修好 修改 修理 假 做完 做法 停 停止 偶尔 允许 免费 入口 全部 公司 公布
    关系 关闭 其余 具体 内容 写 决定 冷 准确 减 减少 出去 出发 出口 出名 出处 出来 出版 出现 出生
    分开 分类 分钟 创立 创造 到达 副作用 办法 功能 加 加入 劣势 动作 包含 包括 区别 医生 升 升级
    单位 单独 卖 危险 历史 原因 原料 原来 去世 参加 双方 反对 反应 反馈 发 发布 发明 发现 发生
    发行 取消 受欢迎 变化 口味 口感 可靠 吃 合法 合适 同事 同意 同时 名字 名称 含 听 听说 告诉
    员工 周末 味道 命运 品牌 品种 喜欢 喝 回去 回复 回来 回答 国家 地区 地址 地方 坏 坏处 坐 型号
    城市 增加 声音 处理 复杂 外观 多余 夜里 够 失败 奖 好处 存 存在 季节 学 学习 学校 学生 孩子
    安全 完成 完整 客人 客户 宣布 容易 容量 宽度 寄 对方 导演 导致 将来 小孩 尺寸 尽快 属于 岁
    工作 工资 左右 差别 帅 带 常见 干 平均 平时 年代 年龄 并发症 座位 延期 建 建立 建议 开 开始
    开心 引起 弱 强 当初 形成 形状 影响 得奖 必要 必须 忘 忘记 快 性格 性能 性质 总共 总数 情况
    意义 意思 意见 感觉 慢 懂 成 成分 成功 成员 成就 成本 成立 截止 房间 手续 打开 打折 找 找到
    技巧 折扣 押金 拒绝 拿 持续 换 接受 推荐 推迟 措施 描述 提 提到 提前 提高 支持 收 收入 收费 改
    改变 改期 政治 政策 故障 效果 教 数据 数量 文件 文化 新 方向 方式 方案 方法 日期 旧 时期 明天
    明年 明显 明白 星期 昨天 普通 普遍 更换 更新 曾经 替 替代 替换 最初 最终 最近 月份 有名 有害
    有效 朋友 服务 期限 未来 机会 机构 材料 材质 来源 标准 标题 根据 案例 楼层 正常 正确 步骤 死
    比例 比较 毕业 水平 法律 活动 流程 流行 消失 消息 涨 深度 清楚 温度 湿 满 满意 演员 火 热 爱
    爱好 父母 版本 牌子 特别 特征 特殊 特点 特色 状况 状态 玩 理由 理解 生活 用处 用法 用途 由来
    电话 疼 症状 痛 目前 目标 目的 直接 相信 相同 看 看到 看法 看见 睡 知道 硬 确定 社会 禁止 离婚
    离开 种类 程度 稳定 空 立刻 章节 等 等级 答 答复 简单 算 类别 类型 系统 累 红 级别 组织 细节
    经常 经济 经理 经验 结婚 结局 结束 结果 结论 继续 缺点 网址 罚款 美 老人 老师 老板 职业 职位
    联系 联系人 肯定 背景 能力 能够 至今 至少 节假日 花费 范围 获奖 著名 行 行为 表现 表示 要求
    规则 规定 规模 觉得 解决 解释 计划 认为 认识 讨厌 记 记得 讲 证件 证据 评价 评论 详细 说明 读
    调整 谈 谢 负责 负责人 贡献 质量 费用 资料 资格 赔偿 赞成 赢 走 起源 足够 跌 距 距离 路线 身份
    软 轻 输 过程 进去 违法 退 退款 退货 送 适合 适用 选 选择 通常 速度 造成 邮件 邮箱 部分 配料
    重 重要 重量 链接 错 错误 长度 问 问题 附近 降 降低 限制 难 面积 项目 顾客 预算 题目 颜色 额外
    风险 饿 首次 马上 高兴 高度
    """.split()  # noqa: SIM905  # words read best as text
)
